package jobcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/filesend"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/script"
)

// maxScript bounds a script, in bytes.
const maxScript = 16 << 20

// scriptGiven returns the command of a job that runs a script of this machine: it travels as an input. Flags that its
// directives give, and the command line does not, are set; their files are those of s.
func scriptGiven(a *cli.App, cmd *cobra.Command, args []string, s *sending) ([]string, error) {
	name := args[0]
	text, err := readScript(name)
	if err != nil {
		return nil, err
	}
	read, err := script.Parse(text)
	if err != nil {
		return nil, cli.Usage("%s:%w", name, err)
	}
	d := directives{name: name, command: cmd, flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
	if err := d.apply(read.Directives, s); err != nil {
		return nil, err
	}
	if read.Near > 0 {
		a.Note("%s:%d: counts for nothing: a directive begins its line with %s and a space", name, read.Near, script.Marker)
	}
	if read.Late > 0 {
		a.Note("%s:%d: counts for nothing: directives stand before the first command", name, read.Late)
	}
	base := filepath.Base(name)
	s.script = &scriptFile{Source: filesend.Source{Local: name, Path: base}, text: text}
	return append([]string{"./" + base}, args[1:]...), nil
}

// readScript reads a script. A command that was meant is told where it stands.
func readScript(name string) ([]byte, error) {
	const meant = "without -- a script of this machine is submitted; a command stands behind it: cloudshare submit [flags] -- %s"
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsRune(name, '/'):
		return nil, cli.Usage("%s: there is no such file: "+meant, name, name)
	case err != nil:
		return nil, cli.Usage("read script: %w", err)
	case !info.Mode().IsRegular():
		return nil, cli.Usage("%s is no file: "+meant, name, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.Usage("read script: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read script: %w", err)
	case len(text) > maxScript:
		return nil, cli.Usage("%s has more than %d bytes: a script is short, and what it reads is an --input", name, maxScript)
	}
	return text, nil
}

// scriptFile is the script that is to run, as its directives were read.
type scriptFile struct {
	filesend.Source
	text []byte
}

// check refuses to send a script that was written since: its directives may be others.
func (f *scriptFile) check() error {
	now, err := readScript(f.Local)
	if err == nil && !bytes.Equal(now, f.text) {
		err = cli.Usage("%s %w", f.Local, filesend.ErrChanged)
	}
	return err
}

// directives are what a script says of its job.
type directives struct {
	name    string
	command *cobra.Command // whose own flags go before
	flags   *pflag.FlagSet // the script's
}

// apply reads the directives, as flags of submit that say what the job is.
func (d *directives) apply(list []script.Directive, s *sending) error {
	specFlags(d.flags)
	jobFileFlags(d.flags)
	d.flags.SetOutput(io.Discard)
	d.flags.Usage = func() {}
	for _, one := range list {
		if err := d.read(one); err != nil {
			return cli.Usage("%s:%d: %w", d.name, one.Line, err)
		}
	}
	var err error
	d.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && !d.command.Flags().Changed(f.Name) && err == nil {
			err = d.set(f, s)
		}
	})
	return err
}

// read reads the flags of one directive.
func (d *directives) read(one script.Directive) error {
	inputs := map[string]int{}
	for _, name := range []string{flagInput, flagInputEach} {
		list, err := textsOf(d.flags, name)
		if err != nil {
			return err
		}
		inputs[name] = len(list)
	}
	err := d.flags.Parse(one.Words)
	var unknown *pflag.NotExistError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return errors.New("--help stands on the command line only")
	case errors.As(err, &unknown) && d.command.Flags().Lookup(unknown.GetSpecifiedName()) != nil:
		return fmt.Errorf("--%s stands on the command line only: directives say what the job is", unknown.GetSpecifiedName())
	case err != nil:
		return cli.PlainValue(err)
	case d.flags.NArg() > 0:
		return fmt.Errorf("%.80q is no flag: directives hold flags of cloudshare submit alone, and the script is the command", d.flags.Arg(0))
	}
	for name, known := range inputs {
		list, err := textsOf(d.flags, name)
		if err != nil {
			return err
		}
		for _, text := range list[known:] {
			if _, err := d.source(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// set gives the command a flag of the script's.
func (d *directives) set(f *pflag.Flag, s *sending) error {
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case f.Name == flagInput || f.Name == flagInputEach:
		for _, text := range list.GetSlice() {
			src, err := d.source(f.Name, text)
			if err != nil {
				return cli.Usage("%s: %w", d.name, err)
			}
			s.more = append(s.more, src)
		}
		return nil
	case !isList:
		return d.command.Flags().Set(f.Name, f.Value.String())
	}
	if err := d.command.Flags().Set(f.Name, ""); err != nil { // it is given now
		return err
	}
	own, ok := d.command.Flags().Lookup(f.Name).Value.(pflag.SliceValue)
	if !ok {
		return fmt.Errorf("flag --%s is no list", f.Name)
	}
	return own.Replace(list.GetSlice())
}

// source returns what a directive's input is made of: files in the script's folder, or below it. Those elsewhere are
// named on the command line: who runs somebody's script does not mean to send what that names.
func (d *directives) source(flag, text string) (filesend.Source, error) {
	dir := filepath.Dir(d.name)
	outside := fmt.Errorf("--%s %.200q is not in the script's folder: name it on the command line, if it is to be sent", flag, text)
	malformed := fmt.Errorf("--%s %.200q: must be FILE[:PATH], or PATTERN:PATH for each task", flag, text)
	switch {
	case text == "" || text[0] == ':':
		return filesend.Source{}, malformed
	case filepath.IsAbs(text):
		return filesend.Source{}, outside
	}
	parse, from := filesend.ParseInput, dir
	if flag == flagInputEach {
		parse, from = filesend.ParseEach, escapeGlob(dir)
	}
	src, err := parse(filepath.Clean(from) + "/" + text)
	if err != nil {
		return src, malformed
	}
	names := []string{src.Local}
	if src.Each {
		if names, err = filepath.Glob(src.Local); err != nil {
			return src, fmt.Errorf("--%s %.200q: %w", flag, text, err)
		}
	}
	for _, name := range append(names, filepath.Dir(src.Local)) {
		if !inside(dir, name) {
			return src, outside
		}
	}
	return src, nil
}

// escapeGlob writes a folder's name as a pattern of it alone.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// inside reports whether a file, and what it leads to, is in a folder or below it. What is not there is judged by its
// name.
func inside(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	whole, err := filepath.EvalSymlinks(name)
	if err != nil {
		return os.IsNotExist(err)
	}
	rel, err = filepath.Rel(root, whole)
	return err == nil && filepath.IsLocal(rel)
}

package cli

import (
	"errors"
	"fmt"
	"os"
)

// SecretFile is a new file for a secret that is told once. It is made before the secret is: one that could not be
// written would be lost.
type SecretFile struct{ file *os.File }

// NewSecretFile makes the file of --out, which must not be there and which only its owner can read; without a path
// there is none.
func NewSecretFile(path string) (*SecretFile, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // without --out there is no file
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, Usage("--out %s: it is there already: name a file that is not, or remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("make the token's file: %w", err)
	}
	return &SecretFile{file}, nil
}

// ShowSecret prints a secret that is told once, alone for people and pipes, or all of v, in which it stands, in the
// format asked for. It is empty where a file has it: people are shown nothing then.
func (a *App) ShowSecret(secret string, v any) error {
	if a.Format != "table" {
		return a.Show(v, nil)
	}
	if secret == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Out, secret)
	return err
}

// Keep writes a secret and closes the file, or removes it if there is none. remedy is what to do if it is lost.
func (f *SecretFile) Keep(secret, remedy string, err error) error {
	if err != nil {
		return errors.Join(err, f.file.Close(), os.Remove(f.file.Name()))
	}
	_, err = f.file.WriteString(secret + "\n")
	if err = errors.Join(err, f.file.Sync(), f.file.Close()); err != nil {
		return fmt.Errorf("write the token into %s: %w: %s", f.file.Name(), err, remedy)
	}
	return nil
}

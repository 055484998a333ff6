package node

import (
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"
)

// ErrAttachedFull says that no more jobs are taken of which something is kept beside their spec.
var ErrAttachedFull = errors.New("too many tasks are kept") // 503

// Attached is what the owner's broker keeps of a job beside its spec: the document that its user sent, where its files
// go, and how it ended. It never leaves that broker. All but Document is held in memory.
type Attached struct {
	User string `json:"user,omitempty"` // whose job it is; "" = the site's own
	// Name and Tags are what lists look at.
	Name string            `json:"name,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	// Document is what its user sent, in the form of whoever answers for it.
	Document json.RawMessage `json:"document,omitempty"`
	// Exports are where files go that the job leaves, once it has ended.
	Exports []Export `json:"exports,omitempty"`
	// Record is the path of a result that is kept with the job's end, "" = none.
	Record string `json:"record,omitempty"`
	// End is how the job ended; nil: it has not, or its files are not where they go yet. It has a record of its own.
	// Without the document it is without Files and Record.
	End *AttachedEnd `json:"-"`
}

// Export is files of a job's results that go to a folder of the owner's site.
type Export struct {
	From string `json:"from"` // in the results: a file, or with Many the files below a folder
	Many bool   `json:"many,omitempty"`
	// Match is the pattern of what is to be below From, in the words of package path, "" = anything; with Tree it is
	// that of folders whose files are to be there, too.
	Match string `json:"match,omitempty"`
	Tree  bool   `json:"tree,omitempty"`
	Root  string `json:"root"` // a folder that the job's user may write to
	To    string `json:"to"`   // below it, "." = itself
	Tag   int    `json:"tag"`  // says to who asked for it which one it is
}

// AttachedEnd is how a job ended.
type AttachedEnd struct {
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	Site     string    `json:"site,omitempty"`
	Attempt  uint32    `json:"attempt,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Signal   *int      `json:"signal,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Created  time.Time `json:"created,omitzero"`
	// Unbrought: it ended before it began, since its inputs could not be brought; Reason says why.
	Unbrought bool `json:"unbrought,omitempty"`
	// Why the files did not get to where they go, "" = they did, or there were none to go.
	Why string `json:"why,omitempty"`
	// Files are those that did.
	Files []Exported `json:"files,omitempty"`
	// Untold is how many more of them there are, which are not kept.
	Untold int `json:"untold,omitempty"`
	// Record is what Attached.Record names. Troubled: by it, what ran the task's steps failed, and not one of them.
	Record   []byte `json:"record,omitempty"`
	Troubled bool   `json:"troubled,omitempty"`
}

// Exported is a file that went where it goes.
type Exported struct {
	Tag  int    `json:"tag"`
	Path string `json:"path,omitempty"` // below Export.From, "" = that itself
	Size int64  `json:"size"`
}

// AttachedJob is a job with what is kept of it.
type AttachedJob struct {
	Num uint64
	Attached
	Bytes int64 // of the document
}

// Takes returns where below what it goes to a file of the results stands, "" if it is it, and whether it is one of its
// files. Another site has named them: nothing holds that was not asked for.
func (x *Export) Takes(file string) (rel string, is bool) {
	if !x.Many {
		return "", file == x.From
	}
	rel, is = strings.CutPrefix(file, x.From+"/")
	return rel, is && x.matches(rel)
}

// matches reports whether the pattern is that of a file, or of a folder that it is in. Only a dot stands for a dot at
// the beginning.
func (x *Export) matches(rel string) bool {
	switch {
	case x.Match == "":
		return true
	case rel == "" || rel[0] == '.' && x.Match[0] != '.':
		return false
	}
	for at := rel; at != "."; at = path.Dir(at) {
		if yes, err := path.Match(x.Match, at); yes && err == nil {
			return true
		}
		if !x.Tree {
			return false
		}
	}
	return false
}

// Hides reports whether a file at the top of the folder, or the folder there that it is in, has a name that programs
// take for their own settings, such as .bashrc and .ssh, and that nobody has asked for.
func (x *Export) Hides(rel string) bool { return x.Match == "" && strings.HasPrefix(rel, ".") }

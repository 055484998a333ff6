// Package exports keeps what the owner's broker knows of a job beside its spec ([node.Attached]), and brings the files
// that such a job leaves to folders of its site (step 7 of a job's way): below the roots that the configuration gives
// its user, and nowhere else. It imports journal and vocabulary, and nothing of the broker, which says what has ended.
//
//	roots := exports.Roots{"alice": {"/data/alice"}}
//	root, rel, err := roots.Find("alice", "/data/alice/out/a.csv") // what a user may name
//	book, err := exports.Open(journal)                            // reads the journal
//	book.Keep(num, attached)                                      // the core has recorded it
//	files, err := exports.Write(ctx, list, source)                // brings files where they go
//	err = book.End(num, end)                                      // durable when it returns
package exports

import "errors"

// ErrRefused says that a path is none that may be read or written for a user.
var ErrRefused = errors.New("the path is refused") // 422

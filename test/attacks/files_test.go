//go:build attacks

package attacks

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/intruder"
)

// kept has a site keep a file for its jobs, and returns its name.
func kept(t *testing.T, s *testbed.Site, content string) (sum string) {
	t.Helper()
	sum = fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	must(t, s.PutBlob(within(t), sum, []byte(content)))
	return sum
}

// wish is how a whole blob of one piece is asked for.
func wish(ref command.AttemptRef, what transfer.What, content string) transfer.Request {
	n := int64(len(content))
	return transfer.Request{
		Blob: transfer.Blob{Attempt: ref, What: what, Hash: sha256.Sum256([]byte(content)), Size: n}, Length: n,
	}
}

// refused checks that a site refuses what somebody asks it for, with one of these words, and sends no byte.
func refused(
	t *testing.T, name string, who *intruder.Intruder, at *testbed.Site, q transfer.Request, want ...transfer.Refusal,
) {
	t.Helper()
	b, why, err := who.AskFile(within(t), peerOf(t, at), q)
	if err != nil || len(b) > 0 || !slices.Contains(want, why) {
		t.Errorf("%s: %s is told by %s: %d bytes, refusal %d, %v", name, who.Site, at.Name, len(b), why, err)
	}
}

// TestInputsOfOthers: the files of a task are given by its owner to the site that runs it, while it does, and as its
// job names them. Neither another member, nor that site by another attempt, hash or kind, nor anybody by a hash that
// they know, gets a byte; nor does the site that has them in its cache give them on.
func TestInputsOfOthers(t *testing.T) {
	attacked(t)
	const mine, others = "the measurements of the season", "the measurements of another job"
	owner, runs, third := shared.Sites[0], shared.Sites[1], shared.Sites[2]
	with := func(content string, at *testbed.Site) command.AttemptRef {
		return begun(t, owner, testbed.Spec{
			Command: []string{"/bin/sleep", "600"}, Sites: &testbed.Where{Only: []string{at.Name}},
			Inputs: []testbed.Input{{Path: "in", SHA256: kept(t, owner, content)}},
		})
	}
	ref, other := with(mine, runs), with(others, third)
	right, no := wish(ref, transfer.Input, mine), transfer.NotAllowed
	executor, outsider := keyOf(t, runs), keyOf(t, third)
	b, why, err := executor.AskFile(within(t), peerOf(t, owner), right)
	if string(b) != mine || why != transfer.Granted || err != nil {
		t.Fatalf("the site that runs it is told %q, refusal %d, %v", b, why, err)
	}
	for _, who := range []*intruder.Intruder{mallory(t).Intruder, outsider} {
		for _, at := range shared.Sites[:2] {
			for what := transfer.Input; what <= transfer.Output+1; what++ {
				refused(t, fmt.Sprint("kind ", what), who, at, wish(ref, what, mine), no)
			}
		}
	}
	for name, q := range map[string]transfer.Request{
		"another job's file":           wish(ref, transfer.Input, others),
		"another site's attempt":       wish(other, transfer.Input, others),
		"by an attempt that it is not": wish(other, transfer.Input, mine),
		"as a manifest of outputs":     wish(ref, transfer.Manifest, mine),
		"as an output":                 wish(ref, transfer.Output, mine),
		"of a kind that nobody knows":  wish(ref, 200, mine),
		"an attempt before":            changed(right, func(q *transfer.Request) { q.Attempt.Attempt-- }),
		"an attempt to come":           changed(right, func(q *transfer.Request) { q.Attempt.Attempt++ }),
		"with another token":           changed(right, func(q *transfer.Request) { q.Attempt.Token-- }),
		"of another task":              changed(right, func(q *transfer.Request) { q.Attempt.Task = 1 }),
		"of a job of its own":          changed(right, func(q *transfer.Request) { q.Attempt.Job.Site = runs.Name }),
	} {
		refused(t, name, executor, owner, q, no)
	}
	refused(t, "another size", executor, owner, changed(right, func(q *transfer.Request) { q.Size++ }), transfer.NotHere)
	refused(t, "by a state to come", executor, owner,
		changed(right, func(q *transfer.Request) { q.Index = 1 << 60 }), transfer.Behind)
	refused(t, "from its cache", keyOf(t, owner), runs, right, no)

	_, err = third.Submit(within(t), testbed.Spec{
		Command: []string{"/bin/true"}, Inputs: []testbed.Input{{Path: "in", SHA256: hashText(mine)}},
	})
	var no422 *testbed.HTTPError
	if !errors.As(err, &no422) || no422.Status != http.StatusUnprocessableEntity {
		t.Errorf("a job at another site that names its hash: %v", err)
	}
	must(t, owner.Cancel(within(t), ref.Job.String()))
	_, err = owner.AwaitJob(within(t), ref.Job.String(), "cancelled")
	must(t, err)
	refused(t, "when it has ended", executor, owner, right, no)
}

func hashText(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

func changed(q transfer.Request, f func(*transfer.Request)) transfer.Request {
	f(&q)
	return q
}

// TestNonsenseAboutFiles: who asks for what is no part of a blob, or for more than a request may have, is hung up on,
// whether it may read the blob or not, and the broker goes on.
func TestNonsenseAboutFiles(t *testing.T) {
	attacked(t)
	const content = "some measurements"
	owner, runs := shared.Sites[0], shared.Sites[1]
	ref := begun(t, owner, testbed.Spec{
		Command: []string{"/bin/sleep", "600"}, Sites: &testbed.Where{Only: []string{runs.Name}},
		Inputs: []testbed.Input{{Path: "in", SHA256: kept(t, owner, content)}},
	})
	right := wish(ref, transfer.Input, content)
	nonsense := map[string][]byte{
		"257 parts":    intruder.EncodeFiles(0, slices.Repeat([]transfer.Request{right}, 257)...),
		"no part":      intruder.EncodeFiles(0),
		"2^60 parts":   {0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10},
		"a megabyte":   bytes.Repeat([]byte{1}, 1<<20),
		"bytes behind": append(intruder.EncodeFiles(0, right), 0),
	}
	for name, f := range map[string]func(*transfer.Request){
		"behind its end":          func(q *transfer.Request) { q.Offset = 1 },
		"far behind":              func(q *transfer.Request) { q.Offset = 1 << 62 },
		"before its beginning":    func(q *transfer.Request) { q.Offset = -1 },
		"no byte":                 func(q *transfer.Request) { q.Length = 0 },
		"2^63 bytes":              func(q *transfer.Request) { q.Length = -1 << 63 },
		"of a blob without bound": func(q *transfer.Request) { q.Size, q.Length = 1<<62, transfer.PieceBytes },
		"more than a piece":       func(q *transfer.Request) { q.Size, q.Length = 1<<30, transfer.PieceBytes+1 },
		"kind 0":                  func(q *transfer.Request) { q.What = 0 },
		"a path for a site":       func(q *transfer.Request) { q.Attempt.Job.Site = "../site-2" },
	} {
		nonsense[name] = intruder.EncodeFiles(0, changed(right, f))
	}
	for _, who := range []*intruder.Intruder{keyOf(t, runs), mallory(t).Intruder} {
		for name, request := range nonsense {
			for _, at := range shared.Sites {
				b, why, err := who.AskFileRaw(within(t), peerOf(t, at), request)
				if !hungUp(err) {
					t.Errorf("%s asks %s: %s: %d bytes, refusal %d, %v", who.Site, at.Name, name, len(b), why, err)
				}
			}
		}
	}
}

// hungUp reports whether the other end has closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// left returns the manifest, and the one blob in it, of what a task of an owner has left at a site; "" = not there.
func left(t *testing.T, at, owner *testbed.Site, having string) (manifest, blob string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dataOf(at), "data", "outgoing", owner.Name, "*", "*"))
	must(t, err)
	for _, name := range found {
		b, err := os.ReadFile(name)
		switch text := string(b); {
		case errors.Is(err, fs.ErrNotExist): // released meanwhile
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(text, "cloudshare files 1\n"):
			manifest = text
		case strings.Contains(text, having):
			blob = text
		}
	}
	return manifest, blob
}

// TestFilesLeftForOthers: what a task has left is given by the site that ran it to its owner's broker alone, by the
// attempt that left it, and as its manifest names it. They go once its owner has them, maybe before the test asks.
func TestFilesLeftForOthers(t *testing.T) {
	attacked(t)
	at := shared.Sites[1]
	leaves := func(owner *testbed.Site, secret string) command.AttemptRef {
		a, err := owner.Submit(within(t), testbed.Spec{
			Command: []string{"/bin/sh", "-c", "yes '" + secret + "' | head -c 40000 >out; exit 3"},
			Sites:   &testbed.Where{Only: []string{at.Name}}, Outputs: &testbed.Outputs{Paths: []string{"out"}},
		})
		must(t, err)
		_, err = owner.AwaitJob(within(t), a.ID, "failed")
		must(t, err)
		return attemptOf(t, owner, a.ID)
	}
	owner, third := shared.Sites[0], shared.Sites[2]
	await(t, "answers before their owners' brokers have brought the files home", func() error {
		other, ref := leaves(third, "of the third"), leaves(owner, "of the first")
		otherManifest, otherBlob := left(t, at, third, "of the third")
		manifest, blob := left(t, at, owner, "of the first")
		if otherBlob == "" || blob == "" {
			return errNotYet
		}
		by, right := keyOf(t, owner), wish(ref, transfer.Output, blob)
		for _, q := range []transfer.Request{wish(ref, transfer.Manifest, manifest), right} {
			for _, who := range []*intruder.Intruder{mallory(t).Intruder, keyOf(t, third), keyOf(t, at)} {
				for _, asked := range shared.Sites[:2] {
					if who.Site == asked.Name {
						continue // nobody greets itself
					}
					refused(t, "what another's task has left", who, asked, q, transfer.NotAllowed)
				}
			}
			b, why, err := by.AskFile(within(t), peerOf(t, at), q)
			switch {
			case why == transfer.Gone:
				return errNotYet
			case len(b) == 0 || why != transfer.Granted || err != nil:
				t.Fatalf("its owner is told %d bytes, refusal %d, %v", len(b), why, err)
			}
		}
		for name, q := range map[string]transfer.Request{
			"another owner's manifest":                wish(ref, transfer.Manifest, otherManifest),
			"another owner's file":                    wish(ref, transfer.Output, otherBlob),
			"another owner's file, by that's attempt": wish(other, transfer.Output, otherBlob),
			"its manifest as a file":                  wish(ref, transfer.Output, manifest),
			"its file as a manifest":                  wish(ref, transfer.Manifest, blob),
			"its file as an input":                    wish(ref, transfer.Input, blob),
			"its file as what nobody knows":           wish(ref, 200, blob),
			"by an attempt to come":                   changed(right, func(q *transfer.Request) { q.Attempt.Attempt++ }),
			"by another token":                        changed(right, func(q *transfer.Request) { q.Attempt.Token++ }),
			"another size":                            changed(right, func(q *transfer.Request) { q.Size++ }),
		} {
			b, why, err := by.AskFile(within(t), peerOf(t, at), q)
			switch {
			case why == transfer.Gone && len(b) == 0:
				return errNotYet
			case err != nil || len(b) > 0 || why != transfer.NotAllowed && why != transfer.NotHere:
				t.Errorf("%s: %s is told by %s: %d bytes, refusal %d, %v", name, by.Site, at.Name, len(b), why, err)
			}
		}
		return nil
	})
}

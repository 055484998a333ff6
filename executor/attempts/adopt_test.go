package attempts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// folders makes folders below a new one, with an Aside and its log.
func folders(t *testing.T, names ...string) (dir string, aside *Aside, log *bytes.Buffer) {
	t.Helper()
	log, home := new(bytes.Buffer), t.TempDir()
	dir = filepath.Join(home, "slots")
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name, "deeper"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, NewAside(Keeping{Dir: home, Logger: zerolog.New(log)}), log
}

// TestAdoptEach: what cannot be adopted is put aside and named in the log, and keeps
// nothing else from being adopted; the caller's end does.
func TestAdoptEach(t *testing.T) {
	dir, aside, log := folders(t, "a", "b", "c")
	var seen, given []string
	x := Adoption{Dir: dir, What: "slot", One: func(name string) error {
		if seen = append(seen, name); name == "b" {
			return errors.New("broken")
		}
		return nil
	}, GiveUp: func(name string) { given = append(given, name) }}
	err := aside.AdoptEach(t.Context(), x)
	if err != nil || !slices.Equal(seen, []string{"a", "b", "c"}) || !slices.Equal(given, []string{"b"}) {
		t.Errorf("got %v after %v, gave up %v", err, seen, given)
	}
	kept := aside.list()
	if len(kept) != 1 || !strings.HasSuffix(kept[0], "-b") || !strings.Contains(log.String(), "adopt slot b: broken") {
		t.Errorf("put aside: %v; the log: %s", kept, log)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err = aside.AdoptEach(ctx, x); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err = FirstLook(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPassingErrorsPutNothingAside: a broker that starts where descriptors or memory lack
// put the folders of running attempts aside, with their results and their output.
func TestPassingErrorsPutNothingAside(t *testing.T) {
	for name, x := range map[string]struct {
		lasts time.Duration
		given []string
	}{
		"for a moment": {lasts: time.Second},
		"for good":     {lasts: time.Hour, given: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, aside, log := folders(t, "a", "b")
			synctest.Test(t, func(t *testing.T) {
				var adopted, given []string
				begun := time.Now()
				err := aside.AdoptEach(t.Context(), Adoption{Dir: dir, What: "slot", One: func(name string) error {
					if time.Since(begun) < x.lasts {
						return fmt.Errorf("read it: %w", &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE})
					}
					adopted = append(adopted, name)
					return nil
				}, GiveUp: func(name string) { given = append(given, name) }})
				if err != nil || len(adopted)+len(given) != 2 || !slices.Equal(given, x.given) {
					t.Errorf("got %v; adopted %v, gave up %v", err, adopted, given)
				}
				if took := time.Since(begun); took > adoptPatience+time.Second {
					t.Errorf("the start took %v", took)
				}
			})
			if left, err := os.ReadDir(dir); err != nil || len(left) != 2 || len(aside.list()) != 0 {
				t.Errorf("left: %v, %v; put aside: %v", left, err, aside.list())
			}
			if said := strings.Contains(log.String(), "left where it is"); said != (x.given != nil) {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

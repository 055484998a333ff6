//go:build zookeeper

package zk

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// export reads a tree, and how it goes on in the next epoch.
func (c *cluster) export(t *testing.T) (Sealed, *coordtest.Machine, error) {
	t.Helper()
	var s Sealed
	m := coordtest.NewMachine()
	v := Visitor{Place: c.place, Machine: m, Logger: testLogger()}
	err := Export(patience(t), v, func(x Sealed) error { s = x; return nil })
	return s, m, err
}

// seed is the next epoch after an export, first gone on with by a site, after holdMs.
func seed(t *testing.T, s Sealed, m *coordtest.Machine, site string, holdMs int64) Seed {
	t.Helper()
	if err := coord.BeginEpoch(m, site, s.Epoch+1, holdMs); err != nil {
		t.Fatal(err)
	}
	frozen, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := frozen.Write(&b); err != nil {
		t.Fatal(err)
	}
	return Seed{
		Federation: s.Federation, Epoch: s.Epoch + 1, Lineage: [16]byte{byte(s.Epoch + 5)}, Term: s.Term,
		Origin: s.Moved,
		Entry:  m.Index(), State: &b,
	}
}

// says wants an error of a kind that says texts in one line.
func says(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	wants(t, err, want)
	for _, text := range texts {
		if err != nil && (!strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q does not say %q in one line", err, text)
		}
	}
}

// TestMove: a tree with snapshots and entries is sealed and exported, and goes on
// below another chroot in the next epoch: nothing is lost, numbers and terms grow,
// the members follow with their old data, and nobody goes back.
func TestMove(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b", "c")
	speak := func(s *speaker, times int) {
		t.Helper()
		for range times {
			if err := s.say(patience(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	speak(all[0], 20)
	c.Compact(t)
	speak(all[1], 5)
	_, _, err := c.export(t)
	says(t, err, coord.ErrRunning, "a b c are connected", "stop all")
	term, entries := c.leader(t).Status().Term, all[1].m.Index()
	for _, s := range all {
		if err := s.l.Close(); err != nil {
			t.Fatal(err)
		}
	}

	first, m, err := c.export(t)
	if err != nil || first.Federation != c.fed || first.Term < term || m.Index() < entries {
		t.Fatalf("%+v at entry %d, %v", first, m.Index(), err)
	}
	again, _, err := c.export(t)
	if err != nil || again != first {
		t.Errorf("exported again: %+v, %v", again, err)
	}
	_, err = Open(patience(t), c.config("a", coordtest.NewMachine()))
	says(t, err, coord.ErrMoved, "cloudshare state reopen", c.place.Chroot)

	old := c.place
	s := seed(t, first, m, "b", 0)
	entry, trace := m.Entries()
	says(t, Found(patience(t), old, s, testLogger()), tree.ErrTree, "another chroot")
	c.place = place()
	if err := Found(patience(t), c.place, s, testLogger()); err != nil {
		t.Fatal(err)
	}
	says(t, Found(patience(t), c.place, s, testLogger()), tree.ErrTree, "imported at "+c.place.Chroot+" already")

	after := coordtest.NewMachine()
	l, err := Open(patience(t), c.config("b", after))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if at, got := after.Entries(); at < entry || at == entry && got != trace {
		t.Errorf("goes on at entry %x with another state than that of %x", at, entry)
	}
	sp := &speaker{l: l, m: after, site: "b"}
	sp.register(t, 2)
	speak(sp, 3)
	if st := l.Status(); st.Term <= first.Term || command.EpochOf(after.Index()) != 1 ||
		!slices.Equal(st.Voters, []string{"b"}) {
		t.Errorf("%+v at entry %x", st, after.Index())
	}
	follower, err := Open(patience(t), c.config("c", coordtest.NewMachine()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := follower.Sync(patience(t)); err != nil || follower.Lineage() != l.Lineage() {
		t.Errorf("lineage %x, %v", follower.Lineage(), err)
	}
	_ = follower.Close()

	place := c.place
	c.place = old
	reopened := coordtest.NewMachine()
	if err := Reopen(patience(t), Visitor{Place: old, Machine: reopened, Logger: testLogger()}, func(x Sealed) error {
		if at, got := reopened.Entries(); x != first || at > entry || at == entry && got != trace {
			t.Errorf("reopens %+v at entry %x", x, at)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err = Open(patience(t), c.config("c", coordtest.NewMachine()))
	says(t, err, ErrIdentity, "in epoch 0", "of epoch 1")
	back := c.config("d", coordtest.NewMachine())
	back.Join, back.MinEpoch, back.Dir = true, 1, t.TempDir()
	_, err = Open(patience(t), back)
	says(t, err, ErrIdentity, "has been in epoch 0", "import the state first")
	c.place = place
}

// TestSealDeposes: a broker that was cut off from the ensemble while its tree was
// sealed stops when it is back.
func TestSealDeposes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := c.open(t, "a", "b")
	if err := all[1].l.Close(); err != nil {
		t.Fatal(err)
	}
	c.Cut("a")
	var s Sealed
	for ctx := patience(t); ; { // its ephemerals go with its session
		var err error
		if s, _, err = c.export(t); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		says(t, err, coord.ErrRunning)
	}
	c.Heal("a")
	select {
	case <-all[0].l.Failed():
		says(t, all[0].l.Err(), coord.ErrMoved, s.Moved)
	case <-patience(t).Done():
		t.Fatal("it goes on")
	}
	reopen := func(check error) error {
		v := Visitor{Place: c.place, Machine: coordtest.NewMachine(), Logger: testLogger()}
		return Reopen(patience(t), v, func(Sealed) error { return check })
	}
	says(t, reopen(coordtest.ErrFault), coordtest.ErrFault)
	_, err := Open(patience(t), c.config("b", coordtest.NewMachine()))
	says(t, err, coord.ErrMoved) // what was refused has changed nothing
	if err := reopen(nil); err != nil {
		t.Fatal(err)
	}
	before := dump(t, c.place)
	if err := reopen(coordtest.ErrFault); err != nil || dump(t, c.place) != before {
		t.Errorf("an open tree: %v", err) // nothing to do, and nothing was sealed
	}
	c.open(t, "b")
}

// mislaid is a connection that ends as soon as it has sent a word, before any answer.
type mislaid struct {
	net.Conn
	word []byte
	once *sync.Once
}

func (m mislaid) Write(b []byte) (n int, err error) {
	n, err = m.Conn.Write(b)
	if bytes.Contains(b, m.word) {
		m.once.Do(func() { _ = m.Close() })
	}
	return n, err
}

// TestSealAnswerLost: a seal whose answer was lost is recognized.
func TestSealAnswerLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.oneStopped(t)
	var once sync.Once
	cl, err := connect(c.place, func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return mislaid{conn, []byte(`"moved":"`), &once}, err
	}, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.close()
	cl.mark = tree.MarkPath(fmt.Sprintf("%x", c.fed))
	_, id, err := (&Log{c: cl}).seal(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := c.export(t); err != nil || s.Moved != id {
		t.Errorf("sealed by %s, exported as %s, %v", id, s.Moved, err)
	}
}

// oneStopped leaves a tree with some entries and no broker.
func (c *cluster) oneStopped(t *testing.T) {
	t.Helper()
	a := c.open(t, "a")[0]
	for range 4 {
		if err := a.say(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExportRefused: what is no tree, somebody else's, or lacks an entry.
func TestExportRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, _, err := c.export(t)
	says(t, err, ErrNoTree, c.place.Chroot)
	c.oneStopped(t)
	mine := c.place
	c.place.Password = "wrong"
	_, _, err = c.export(t)
	says(t, err, ErrDenied)
	c.place = mine
	cl, err := connect(mine, nil, testLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.close()
	if _, err := cl.write(patience(t), cl.remove(tree.EntryPath(3))); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.export(t)
	says(t, err, tree.ErrDamaged, mine.Chroot+tree.EntryPath(3), "it is missing")
}

// cutting is a state whose reading ends the import at its n-th call.
type cutting struct {
	*bytes.Reader
	n   int
	end context.CancelCauseFunc
}

func (r *cutting) Read(b []byte) (int, error) {
	if r.n--; r.n == 0 {
		r.end(coordtest.ErrFault)
	}
	return r.Reader.Read(b)
}

// TestFoundInterrupted: an import that is cut off before any of its writes is
// repeated, with another lineage, and leaves the tree of one.
func TestFoundInterrupted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.oneStopped(t)
	s, m, err := c.export(t)
	if err != nil {
		t.Fatal(err)
	}
	sd := seed(t, s, m, "a", 0)
	state := sd.State.(*bytes.Buffer).Bytes()
	c.place = place()
	for cut := 1; ; cut++ {
		cl, err := connect(c.place, nil, testLogger())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(patience(t))
		sd.State, sd.Lineage = &cutting{bytes.NewReader(state), cut, cancel}, [16]byte{byte(cut)}
		err = cl.importSnapshot(ctx, sd)
		cl.close()
		if err == nil {
			break
		}
		if _, _, err := c.export(t); err == nil {
			t.Fatalf("cut off at %d: half a tree is there", cut)
		}
		if cut > 10 {
			t.Fatal("it never ends")
		}
	}
	c.open(t, "a")
}

// TestExportLosesEnsemble: an ensemble that goes away while a tree is exported or
// reopened is given up.
func TestExportLosesEnsemble(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.oneStopped(t)
	err := atTree(patience(t), Visitor{Place: c.place, Machine: coordtest.NewMachine(), Logger: testLogger()},
		func(ctx context.Context, l *Log, _ *tree.Charter) error {
			l.c.patience = time.Second
			l.c.dialer.close()
			return l.applyAll(ctx)
		})
	says(t, err, ErrUnreachable, c.place.String(), errUnanswered.Error())
}

// TestFoundWithoutAnswer: an import gives up an ensemble that says nothing.
func TestFoundWithoutAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := place()
	p.Servers = []string{silent.Addr().String()}
	err = foundAt(patience(t), p, Seed{State: new(bytes.Buffer)}, time.Second, testLogger())
	says(t, err, ErrUnreachable, p.Servers[0], errUnanswered.Error())
}

// meeting is a state whose reading lets another import in before its n-th call.
type meeting struct {
	*bytes.Reader
	n    int
	meet func()
}

func (r *meeting) Read(b []byte) (int, error) {
	if r.n--; r.n == 0 {
		r.meet()
	}
	return r.Reader.Read(b)
}

// TestTwoImports: of two imports of one file at a time, with lineages and states of
// their own, the one that began last makes the tree, wherever they meet; the other
// changes nothing of it.
func TestTwoImports(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.oneStopped(t)
	s, m, err := c.export(t)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := c.export(t)
	if err != nil {
		t.Fatal(err)
	}
	early, late := seed(t, s, m, "a", 0), seed(t, s, other, "a", 1)
	late.Lineage = [16]byte{77}
	state, another := early.State.(*bytes.Buffer).Bytes(), late.State.(*bytes.Buffer).Bytes()
	if bytes.Equal(state, another) || early.Entry != late.Entry {
		t.Fatal("the same chunks: the test shows nothing")
	}
	for n := 1; ; n++ {
		c.place = place()
		late.State = bytes.NewReader(another)
		met := false
		early.State = &meeting{bytes.NewReader(state), n, func() {
			met = true
			if err := Found(patience(t), c.place, late, testLogger()); err != nil {
				t.Errorf("met at %d: the later one: %v", n, err)
			}
		}}
		err := Found(patience(t), c.place, early, testLogger())
		if !met {
			if err != nil || n < 2 {
				t.Fatalf("the state was read in %d calls, %v", n, err)
			}
			break
		}
		says(t, err, tree.ErrTree, c.place.Chroot)
		r, err := Inspect(patience(t), c.place, 1, testLogger())
		if err != nil || len(r.Faults) > 0 || r.Lineage != fmt.Sprintf("%x", late.Lineage) {
			t.Errorf("met at %d: %+v, %v", n, r, err)
		}
	}
	c.open(t, "a")
}

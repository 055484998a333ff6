//go:build attacks

package attacks

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// giving is how an executor answers who asks it for files.
type giving func(net.Conn, relay.Preamble)

// executor is a member that lends a machine which runs nothing, says of each task that it has succeeded, and gives its
// owner whatever it likes.
type executor struct {
	*hostile
	gives atomic.Pointer[giving]
}

// gains has it get the task of a job of the first site, and say that this has left something.
func (e *executor) gains(t *testing.T, said command.Output, how giving) command.AttemptRef {
	t.Helper()
	e.gives.Store(&how)
	port, err := e.Listen(func(map[string]any) any { return nil }, http.NotFoundHandler(),
		func(conn net.Conn, p relay.Preamble) { (*e.gives.Load())(conn, p) })
	must(t, err)
	t.Cleanup(port.Close)
	e.register(t, command.Addresses{Peer: port.Addr})
	labels, err := command.LabelsOf(command.FilesLabels(e.Site, 1<<30, 1<<30))
	must(t, err)
	room := command.Resources{MilliCPU: 4000, MemMiB: 1 << 20}
	_, err = e.order(t, e.own(&command.Offer{Version: 1, Capacity: room, Machines: []command.Machine{
		{Name: "m", Resources: room, Whole: room, Labels: labels},
	}}))
	must(t, err)
	owner := shared.Sites[0]
	a, err := owner.Submit(within(t), testbed.Spec{
		Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{e.Site}},
		Outputs: &testbed.Outputs{Paths: []string{"out/*"}},
	})
	must(t, err)
	t.Cleanup(func() { cancel(t, owner, a.ID) })
	await(t, "its assignment", func() error {
		tasks, err := owner.Tasks(t.Context(), a.ID)
		if err == nil && (tasks[0].Token == "" || tasks[0].Token == "0") {
			err = errNotYet
		}
		return err
	})
	ref := attemptOf(t, owner, a.ID)
	_, err = e.order(t, e.own(&command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref}}}))
	must(t, err)
	_, err = e.order(t, e.own(&command.Complete{Attempts: []command.Ended{
		{AttemptRef: ref, Ran: true, RunMs: 1, Output: said},
	}}))
	must(t, err)
	return ref
}

// content is a blob that it has.
type content struct{ *bytes.Reader }

func (content) Close() error { return nil }

// honestly gives these blobs by the protocol, whatever their hash.
func honestly(blobs ...[]byte) giving {
	answer := func(_ context.Context, _ string, q transfer.Request) (transfer.Source, transfer.Refusal) {
		for _, b := range blobs {
			if int64(len(b)) == q.Size {
				return content{bytes.NewReader(b)}, transfer.Granted
			}
		}
		return nil, transfer.NotHere
	}
	s := &transfer.Server{Answer: answer}
	return func(conn net.Conn, p relay.Preamble) { s.Serve(context.Background(), conn, p) }
}

// always answers each request with the same bytes, again and again if they are to have no end, and closes.
func always(answer []byte, endless bool) giving {
	return func(conn net.Conn, _ relay.Preamble) {
		defer conn.Close()
		if _, err := relay.ReadFrame(conn, nil, 1<<20); err != nil {
			return
		}
		for {
			if _, err := conn.Write(answer); err != nil || !endless {
				break
			}
		}
		_, _ = io.Copy(io.Discard, conn) // until who asks has enough
	}
}

func frame(code byte, body []byte) []byte {
	return relay.EndFrame(append(append(relay.Frame(nil), code), body...))
}

// listing is a manifest of files of four bytes at these paths, be they allowed or not.
func listing(paths ...string) []byte {
	text := []byte("cloudshare files 1\n")
	for _, p := range paths {
		text = append(binary.AppendUvarint(text, uint64(len(p))), p...)
		text = append(text, "\x02\x04evil"...)
	}
	return append(text, 0)
}

func said(list []byte, sum int64) command.Output {
	return command.Output{Manifest: files.HashOf(list), Size: int64(len(list)), Bytes: sum}
}

// TestHostileExecutor: whatever a site that ran a task says that it has left, and gives for it, nothing of it is kept
// that its owner's job has not named or that is not what was said; the owner hears why, and its broker goes on.
func TestHostileExecutor(t *testing.T) {
	attacked(t)
	e, owner := &executor{hostile: mallory(t)}, shared.Sites[0]
	defer e.register(t, command.Addresses{}) // which takes its offer back
	bomb, err := zstd.NewWriter(nil)
	must(t, err)
	crowd := make([]string, files.MaxEntries+1)
	for i := range crowd {
		crowd[i] = fmt.Sprintf("out/%06d", i)
	}
	// Each case has a list of its own: what has come of one is not fetched again.
	for name, c := range map[string]struct {
		list  []byte // that it speaks of
		gives giving
		why   string
	}{
		"garbage":        {listing("out/1"), always([]byte("HTTP/1.1 200 OK\r\n\r\n"), false), "faulty, or hostile"},
		"more":           {listing("out/2"), always(frame(0, append(listing("out/2"), 0)), false), "faulty, or hostile"},
		"less":           {listing("out/3"), always(frame(0, listing("out/3")[1:]), false), "faulty, or hostile"},
		"an empty frame": {listing("out/4"), always(frame(0, nil), false), "faulty, or hostile"},
		"4 GiB":          {listing("out/5"), always([]byte{0xff, 0xff, 0xff, 0xff, 0}, false), "faulty, or hostile"},
		"a bomb": {
			listing(crowd[:100]...), always(frame(1, bomb.EncodeAll(make([]byte, 64<<20), nil)), false), "faulty, or hostile",
		},
		"a list without end":    {make([]byte, 20<<20), always(frame(0, make([]byte, 256<<10)), true), "of them is none"},
		"other bytes":           {listing("out/right"), honestly(listing("out/wrong")), "something else than it said"},
		"no such blob":          {listing("out/6"), honestly(), "it has no such blob"},
		"a list that is none":   {[]byte("junk"), nil, "list of them is none"},
		"another sum":           {listing("out/7", "out/8"), nil, "lists 8"},
		"a path that leads out": {listing("../x"), nil, "list of them is none"},
		"an absolute path":      {listing("/etc/x"), nil, "list of them is none"},
		"one path twice":        {listing("out/x", "out/x"), nil, "list of them is none"},
		"100,001 files":         {listing(crowd...), nil, "100000 are the most"},
		"what nobody named":     {listing(".bashrc"), nil, "no output of its job names"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.gives == nil {
				c.gives = honestly(c.list)
			}
			ref := e.gains(t, said(c.list, 4), c.gives)
			await(t, "the end of its attempt", func() error {
				tasks, err := owner.Tasks(t.Context(), ref.Job.String())
				if err == nil && tasks[0].State == "running" {
					err = fmt.Errorf("%+v", tasks[0])
				}
				return err
			})
			told := ""
			for line := range strings.Lines(owner.LogTail(200)) {
				if strings.Contains(line, "not to be had job="+ref.Job.String()+" ") {
					told = line
				}
			}
			if !strings.Contains(told, c.why) {
				t.Errorf("its broker tells %q", told)
			}
			if list, err := owner.ResultFiles(within(t), ref.Job.String()); err != nil || len(list) > 0 {
				t.Errorf("%+v is kept, %v", list, err)
			}
		})
	}
}

// TestDeliverOfOthers: what became of a task's outputs says its owner alone, neither the site that has them nor anybody
// else; once that gives them, they are there.
func TestDeliverOfOthers(t *testing.T) {
	attacked(t)
	e, owner := &executor{hostile: mallory(t)}, shared.Sites[0]
	defer e.register(t, command.Addresses{}) // which takes its offer back
	good := listing("out/x")
	ref := e.gains(t, said(good, 4), func(conn net.Conn, _ relay.Preamble) { _ = conn.Close() })
	delivering := func() {
		t.Helper()
		task := attemptOf(t, owner, ref.Job.String())
		job, err := owner.Job(within(t), ref.Job.String())
		if err != nil || job.Counts["running"] != 1 || task != ref {
			t.Fatalf("its task: %v, attempt %v, %v", job.Counts, task, err)
		}
	}
	delivering()
	third := admit(t, "oscar")
	third.register(t, command.Addresses{})
	for _, who := range []*hostile{e.hostile, third} {
		for o := command.DeliveryOK; o <= command.DeliveryFailed; o++ {
			word := command.Delivered{AttemptRef: ref, Outcome: o}
			outcome, err := who.order(t, who.own(&command.Deliver{Attempts: []command.Delivered{word}}))
			if err != nil || outcome != relay.Ordered {
				t.Errorf("%s says %d: %d, %v", who.Site, o, outcome, err)
			}
			delivering()
		}
	}
	now := honestly(good)
	e.gives.Store(&now)
	if job, err := owner.AwaitJob(within(t), ref.Job.String(), "succeeded", "failed", "lost"); err != nil || job.State != "succeeded" {
		t.Errorf("%+v, %v", job, err)
	}
	list, err := owner.ResultFiles(within(t), ref.Job.String())
	if err != nil || len(list) != 1 || list[0].Path != "out/x" {
		t.Errorf("%+v, %v", list, err)
	}
	must(t, shared.Sites[0].Propose(within(t), "ban", "oscar", shared.Sites[1]))
}

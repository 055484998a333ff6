package notices

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/outward"
)

// TestReceiverIsTold: what a job's user gets, by the example of a receiver in the guide: once, and signed.
func TestReceiverIsTold(t *testing.T) {
	told := make(chan string, 2)
	rc := &Receiver{
		Key:   KeyText(KeyOf(secret, "alice")),
		Ended: func(job, state string) { told <- job + " " + state },
	}
	answers := 0
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if answers++; answers == 1 { // it takes the notice, and its answer is lost
			w = &lost{w}
			defer panic(http.ErrAbortHandler)
		}
		rc.ServeHTTP(w, r)
	})
	r := newRig(t, Config{}, s)
	r.accept(3, "alice", on(s))
	r.end(3, "failed")
	n := r.await(3, "a receipt", over)
	if x := n.List[0]; x.State != node.NoticeSent || x.Attempts != 2 || x.Outcome != "it answered 204 No Content" {
		t.Errorf("%+v", x)
	}
	if got := <-told; got != "site-1.3 failed" || len(told) != 0 {
		t.Errorf("told %s, and %d more", got, len(told))
	}
	if f := r.Figures(time.Now()); f.Sent != 1 || f.Failed != 1 || f.Waiting != 0 || f.GivenUp != 0 {
		t.Errorf("%+v", f)
	}
}

// lost is an answer that goes nowhere.
type lost struct{ http.ResponseWriter }

func (l *lost) WriteHeader(int)             {}
func (l *lost) Write(p []byte) (int, error) { return len(p), nil }

// TestForgedNotices: the example takes nothing that another key, another time, another id or another body made.
func TestForgedNotices(t *testing.T) {
	now := time.Now()
	rc := &Receiver{Key: KeyText(KeyOf(secret, "alice"))}
	signed := func(user string, at time.Time) http.Header {
		h := http.Header{}
		sign(h, KeyOf(secret, user), "evt_1", at, []byte("{}"))
		return h
	}
	if err := rc.verify(signed("alice", now), []byte("{}"), now); err != nil {
		t.Error(err)
	}
	other := signed("alice", now)
	other.Set(HeaderID, "evt_2")
	for name, h := range map[string]http.Header{
		"another user's key": signed("bob", now), "the site's": signed("", now), "old": signed("alice", now.Add(-time.Hour)),
		"of the future": signed("alice", now.Add(time.Hour)), "another id": other, "none": {},
	} {
		if err := rc.verify(h, []byte("{}"), now); !errors.Is(err, errForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rc.verify(signed("alice", now), []byte("{ }"), now); !errors.Is(err, errForged) {
		t.Errorf("another body: %v", err)
	}
}

// TestSignatureOfTheStandard: the one that Standard Webhooks gives as its example comes out.
func TestSignatureOfTheStandard(t *testing.T) {
	h := http.Header{}
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	sign(h, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got := h.Get(HeaderSignature); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

// TestEvent: it has what CloudEvents 1.0.2 requires, and an id that parts nothing of what is signed.
func TestEvent(t *testing.T) {
	got := make(chan *http.Request, 1)
	body := make(chan string, 1)
	s := server(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- r
		body <- string(text)
	})
	r := newRig(t, Config{}, s)
	r.accept(1, "", on(s))
	r.end(1, "succeeded")
	req, text := <-got, <-body
	var e map[string]any
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	id, _ := e["id"].(string)
	if req.Header.Get("Content-Type") != ContentType || req.Method != http.MethodPost || strings.Contains(id, ".") ||
		req.Header.Get(HeaderID) != id || id != eventID("/cloudshare/f/site-1", "site-1.1") {
		t.Errorf("%s, id %s, %v", req.Method, id, req.Header)
	}
	for key, want := range map[string]any{
		"specversion": "1.0", "type": EventType, "source": "/cloudshare/f/site-1", "subject": "site-1.1",
		"datacontenttype": "application/json",
	} {
		if e[key] != want {
			t.Errorf("%s is %v, want %v", key, e[key], want)
		}
	}
	data, _ := e["data"].(map[string]any)
	if data["job"] != "site-1.1" || data["state"] != "succeeded" || data["name"] != "nightly" || data["user"] != nil {
		t.Errorf("%v", data)
	}
	if _, err := time.Parse(time.RFC3339, e["time"].(string)); err != nil {
		t.Error(err)
	}
}

// TestNoticesOutliveTheBroker: one that was not taken is sent by the next run of the broker, with the same id and the
// same bytes, though the job is no longer known then; what was taken is not sent again.
func TestNoticesOutliveTheBroker(t *testing.T) {
	var up atomic.Bool
	var mu sync.Mutex
	var bodies []string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, r.Header.Get(HeaderID)+string(text))
		mu.Unlock()
		if !up.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	r := newRig(t, Config{}, s)
	r.accept(1, "alice", on(s))
	r.accept(2, "alice", on(s))
	r.restart()
	if got := r.Unended(); len(got) != 2 {
		t.Fatalf("not ended: %v", got)
	}
	r.end(1, "succeeded")
	r.await(1, "a second attempt", func(n node.Notices) bool { return n.List[0].Attempts > 1 })
	r.restart()
	up.Store(true)
	n := r.await(1, "a receipt", over)
	mu.Lock()
	for _, b := range bodies {
		if b != bodies[0] {
			t.Errorf("sent %s, and %s", bodies[0], b)
		}
	}
	mu.Unlock()
	r.restart()
	again, _ := r.Find(1)
	if len(r.due()) != 0 || again.List[0].State != n.List[0].State || again.Event != nil {
		t.Errorf("after a receipt: %+v", again)
	}
	r.end(1, "succeeded") // an end is told once
	r.end(2, "succeeded")
	r.await(2, "a receipt", over)
	// Requests are not counted: the server may see late what a stopped run of the broker had begun to send.
	if first, _ := r.Find(1); first.List[0].Attempts != again.List[0].Attempts {
		t.Errorf("tried %d times before a second end, %d times after", again.List[0].Attempts, first.List[0].Attempts)
	}
}

// TestOnlyWhatIsWanted: a hook on failures is not told of a success, and each hook is told for itself.
func TestOnlyWhatIsWanted(t *testing.T) {
	var a, b atomic.Int32
	first := server(t, func(http.ResponseWriter, *http.Request) { a.Add(1) })
	second := server(t, func(http.ResponseWriter, *http.Request) { b.Add(1) })
	r := newRig(t, Config{}, first, second)
	for num, state := range map[uint64]string{1: "succeeded", 2: "failed", 3: "cancelled", 4: "lost", 5: node.Retired} {
		r.accept(num, "", on(first, jobspec.HookFailed), on(second))
		r.end(num, state)
		r.await(num, "the end", over)
	}
	if n, _ := r.Find(1); n.List[0].State != node.NoticeUnwanted || a.Load() != 4 || b.Load() != 5 {
		t.Errorf("%+v; told %d and %d times", n.List, a.Load(), b.Load())
	}
}

// TestGivenUp: a receiver that never takes a notice is left in the end, one that wants no more at once.
func TestGivenUp(t *testing.T) {
	for status, most := range map[int]int{http.StatusTeapot: 1000, http.StatusFound: 1000, http.StatusGone: 1} {
		s := server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		r := newRig(t, Config{GiveUp: 30 * time.Millisecond}, s)
		r.accept(1, "", on(s))
		r.end(1, "failed")
		n := r.await(1, "the end", over)
		x := n.List[0]
		if x.State != node.NoticeGivenUp || x.Attempts > most || !strings.Contains(x.Outcome, http.StatusText(status)) {
			t.Errorf("%d: %+v", status, x)
		}
		if f := r.Figures(time.Now()); f.GivenUp != 1 || f.Waiting != 0 {
			t.Errorf("%d: %+v", status, f)
		}
	}
}

// TestDeadHostsHoldUpNobody: while a host does not answer at all, others are told, also those of the same user.
func TestDeadHostsHoldUpNobody(t *testing.T) {
	never := make(chan struct{})
	dead := server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-never:
		case <-r.Context().Done():
		}
	})
	defer close(never)
	alive := server(t, func(http.ResponseWriter, *http.Request) {})
	r := newRig(t, Config{Within: time.Minute}, dead, alive)
	for num := range uint64(50) {
		r.accept(num+1, "alice", on(dead))
		r.end(num+1, "succeeded")
	}
	for num := range uint64(50) {
		r.accept(num+100, []string{"alice", "bob"}[num%2], on(alive))
		r.end(num+100, "succeeded")
	}
	for num := range uint64(50) {
		r.await(num+100, "a receipt", over)
	}
	if f := r.Figures(time.Now()); f.Waiting != 50 {
		t.Errorf("%+v", f)
	}
}

// TestStuckReceiver: one that takes a request and says nothing is left after a while, with the reason.
func TestStuckReceiver(t *testing.T) {
	s := server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the sender is gone
		<-r.Context().Done()
	})
	r := newRig(t, Config{Within: 20 * time.Millisecond}, s)
	r.accept(1, "", on(s))
	r.end(1, "failed")
	n := r.await(1, "an attempt", func(n node.Notices) bool { return n.List[0].Attempts > 0 })
	if x := n.List[0]; x.Outcome != "no answer within 20ms" {
		t.Errorf("%+v", x)
	}
}

// TestWhoMayBeTold: hosts that are not in the configuration, and addresses that are not the public's, are refused where
// a job names them, by name.
func TestWhoMayBeTold(t *testing.T) {
	some := Config{Hosts: []string{"hooks.example.org", "10.0.0.1"}, Secret: secret}
	for _, c := range []struct {
		cfg      Config
		url, why string
	}{
		{some, "https://hooks.example.org/x", ""},
		{some, "https://evil.example.org/x", `host "evil.example.org" is not allowed: the site's operator allows some by notify.to`},
		{some, "https://hooks.example.org:8443/x", "notify.to"},
		{some, "https://10.0.0.1/x", "notify.private"},
		{some, "http://hooks.example.org/x", "no https URL"},
		{some, "https://u@hooks.example.org/x", "without a user"},
		{Config{}, "https://hooks.example.org/x", "no host is allowed: the site's operator allows some by notify.to"},
	} {
		r := &Book{cfg: c.cfg.withDefaults()}
		spec := jobspec.Spec{Notify: []jobspec.Hook{{URL: c.url}}}
		err := r.Admit([]node.Request{{}, {Spec: spec}})[1]
		refused := errors.Is(err, node.ErrNoticeRefused) && strings.Contains(err.Error(), c.why)
		if c.why == "" && err != nil || c.why != "" && !refused {
			t.Errorf("%s: %v, want %s", c.url, err, c.why)
		}
	}
}

// TestPrivateAddressOfANameIsNotAsked: what a name leads to is looked at where it is connected to.
func TestPrivateAddressOfANameIsNotAsked(t *testing.T) {
	asked := false
	s := server(t, func(http.ResponseWriter, *http.Request) { asked = true })
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	r := newRig(t, Config{}, s)
	r.stop()
	r.cfg.Rules = &outward.Rules{Hosts: []string{"localhost" + port}, Refused: node.ErrNoticeRefused, PrivateKey: "notify.private"}
	r.restart()
	r.accept(1, "", jobspec.Hook{URL: "https://localhost" + port + "/", On: []string{jobspec.HookEnded}})
	r.end(1, "failed")
	n := r.await(1, "an attempt", func(n node.Notices) bool { return n.List[0].Attempts > 0 })
	if x := n.List[0]; !strings.Contains(x.Outcome, "notify.private") || asked {
		t.Errorf("asked: %t, %+v", asked, x)
	}
}

// TestRoom: one user's jobs that wait lock nobody else out, and there is an end to what is taken.
func TestRoom(t *testing.T) {
	b := &Book{cfg: Config{Hosts: []string{"h"}}.withDefaults()}
	b.open.Add("alice", maxOpen/partsOpen, 1)
	req := func(user string) node.Request {
		return node.Request{User: user, Spec: jobspec.Spec{Notify: []jobspec.Hook{{URL: "https://h/"}}}}
	}
	got := b.Admit([]node.Request{req("alice"), req("bob"), req("")})
	if !errors.Is(got[0], node.ErrFull) || got[1] != nil || got[2] != nil {
		t.Errorf("%v", got)
	}
	b.open.Add("", maxOpen-1-b.open.Sum(), 1)
	got = b.Admit([]node.Request{req("bob"), req("bob"), req("")})
	if got[0] != nil || !errors.Is(got[1], node.ErrFull) || !errors.Is(got[2], node.ErrFull) {
		t.Errorf("%v", got)
	}
}

// TestPauses double, are bounded, and differ.
func TestPauses(t *testing.T) {
	c := Config{}.withDefaults()
	last := time.Duration(0)
	for n := 1; n < 100; n++ {
		most, least := c.pauseAfter(n, 0), c.pauseAfter(n, 255)
		if most < last || most > time.Hour || least < most*4/5 || least >= most {
			t.Fatalf("behind attempt %d: %s to %s", n, least, most)
		}
		last = most
	}
	if last != time.Hour || c.pauseAfter(1, 0) != 5*time.Second {
		t.Errorf("from %s to %s", c.pauseAfter(1, 0), last)
	}
}

// TestOnlyTheLatestAreRemembered of what is over.
func TestOnlyTheLatestAreRemembered(t *testing.T) {
	s := server(t, func(http.ResponseWriter, *http.Request) {})
	r := newRig(t, Config{}, s)
	r.accept(1, "", on(s))
	r.end(1, "succeeded")
	r.await(1, "a receipt", over)
	r.mu.Lock()
	for num := range uint64(maxDone) {
		r.over = append(r.over, num+10)
	}
	r.mu.Unlock()
	r.accept(2, "", on(s))
	r.end(2, "succeeded")
	r.await(1, "oblivion", func(n node.Notices) bool { return len(n.List) == 0 })
	r.restart()
	if _, known := r.Find(1); known {
		t.Error("it is in the journal still")
	}
}

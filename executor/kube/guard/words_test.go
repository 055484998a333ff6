package guard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
)

var asked = Question{Attempt: "site-1.7-0-1-9", Run: "R", Nonce: "N"}

// TestAnswersAreTheAskers: an answer counts for its own question only, and nobody
// else can give or change one.
func TestAnswersAreTheAskers(t *testing.T) {
	secret := SecretOf([]byte("key"), asked.Attempt)
	for _, a := range []Answer{{}, {Left: 4500 * time.Millisecond}, {End: true}, {Left: MaxLeft}} {
		line := a.encode(asked, secret)
		if got, err := readAnswer(line, asked, secret); got != a || err != nil {
			t.Errorf("%q: got %+v, %v", line, got, err)
		}
		other := asked
		other.Nonce = "M"
		if got, err := readAnswer(line, other, secret); !errors.Is(err, ErrForged) {
			t.Errorf("%q to another question: got %+v, %v", line, got, err)
		}
		for _, changed := range []string{
			strings.Replace(line, " ", " 1", 1),
			strings.Replace(strings.Replace(line, "end", "live", 1), " 0 ", " 9 ", 1),
		} {
			if got, err := readAnswer(changed, asked, secret); changed != line && err == nil {
				t.Errorf("%q: got %+v", changed, got)
			}
		}
		if _, err := readAnswer(line, asked, SecretOf([]byte("other"), asked.Attempt)); !errors.Is(err, ErrForged) {
			t.Errorf("another's: %v", err)
		}
	}
	if _, err := readAnswer("live 3600000 "+sign([]byte(secret), "answer"), asked, secret); !errors.Is(err, ErrGarbled) {
		t.Errorf("an hour: %v", err)
	}
}

// TestTokensAreTheAttempts: for files, too, the secret of one attempt says nothing of another's.
func TestTokensAreTheAttempts(t *testing.T) {
	key, other := []byte("key"), "site-1.7-0-1-8"
	token := TokenOf(SecretOf(key, asked.Attempt), asked.Attempt)
	if !IsToken(key, asked.Attempt, token) {
		t.Error("its own is refused")
	}
	for name, is := range map[string]bool{
		"another attempt's":    IsToken(key, other, token),
		"made with its secret": IsToken(key, other, TokenOf(SecretOf(key, asked.Attempt), other)),
		"another handler's":    IsToken([]byte("other"), asked.Attempt, token),
		"none":                 IsToken(key, asked.Attempt, ""),
		"the secret itself":    IsToken(key, asked.Attempt, SecretOf(key, asked.Attempt)),
		"of no name":           IsToken(key, "a\nb", TokenOf(SecretOf(key, "a\nb"), "a\nb")),
	} {
		if is {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestQuestionsAreTheGuards: who has not the attempt's secret learns nothing.
func TestQuestionsAreTheGuards(t *testing.T) {
	key := []byte("key")
	s := httptest.NewServer(NewServer(key, func(q Question) Answer {
		if q != asked {
			t.Errorf("heard %+v", q)
		}
		return Answer{Left: time.Second}
	}, nil).Handler)
	defer s.Close()
	secret := SecretOf(key, asked.Attempt)
	other := asked
	other.Attempt += "0"
	long := asked
	long.Run = strings.Repeat("r", maxName+1)
	for query, want := range map[string]int{
		asked.encode(secret):   http.StatusOK,
		asked.encode("guess"):  http.StatusForbidden,
		other.encode(secret):   http.StatusForbidden,
		long.encode(secret):    http.StatusBadRequest,
		"attempt=a%0Ab&run=&x": http.StatusBadRequest,
		"":                     http.StatusBadRequest,
	} {
		res, err := http.Get(s.URL + path + "?" + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || res.Close != (want != http.StatusOK) {
			t.Errorf("%s: %s, connection closed: %t; want %d, and it kept for a guard only", query, res.Status, res.Close, want)
		}
	}
	res, err := http.Get(s.URL + "/watchdog/0?" + asked.encode(secret))
	if err != nil || res.StatusCode != http.StatusNotFound || !res.Close {
		t.Errorf("another version: %v, %v", res, err)
	}
	res.Body.Close()
}

// TestAllow: what counts is when the question was asked, less what the clocks may
// differ by; a moment that was told is never taken back.
func TestAllow(t *testing.T) {
	a := newAsker(Orders{})
	now := executor.Boottime()
	a.allow(now, 10*time.Second)
	if got := a.until.Load() - now; got != int64(9900*time.Millisecond) {
		t.Errorf("until %s", time.Duration(got))
	}
	a.allow(now-int64(time.Second), 10*time.Second)
	if got := a.until.Load() - now; got != int64(9900*time.Millisecond) {
		t.Errorf("until %s after a shorter one", time.Duration(got))
	}
}

func TestOrders(t *testing.T) {
	o := Orders{URL: "http://10.0.0.1:7703", Attempt: "a-1", Secret: "s", Grace: time.Second, Patience: time.Minute}
	text, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o.Version = version
	if back, err := DecodeOrders(text); back != o || err != nil {
		t.Errorf("got %+v, %v", back, err)
	}
	for _, wrong := range []string{
		"", "{}", strings.Replace(text, `"v":1`, `"v":2`, 1), strings.Replace(text, "a-1", `a\n1`, 1),
		strings.Replace(text, "http:", "ftp:", 1), text + strings.Repeat(" ", maxOrders),
	} {
		if got, err := DecodeOrders(wrong); err == nil {
			t.Errorf("%.60q: got %+v", wrong, got)
		}
	}
	for _, wrong := range []string{"", "http://a", "https://a:1", "http://a:1/x", "http://a:1?b", "http://u@a:1", "http://:1"} {
		if CheckURL(wrong) == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestOrdersWithFiles are of another version: a program that knows no files would begin a task without them.
func TestOrdersWithFiles(t *testing.T) {
	o := Orders{
		URL: "http://10.0.0.1:7703", Attempt: "a-1", Secret: "s", Free: true,
		Files: &Files{Key: make([]byte, 32), Fetch: true, Outputs: executor.Outputs{Paths: []string{"out/"}}},
	}
	text, err := o.Encode()
	if err != nil || !strings.Contains(text, `"v":2`) {
		t.Fatalf("got %s, %v", text, err)
	}
	if back, err := DecodeOrders(text); err != nil || !back.Free || back.Files == nil || !back.Files.Outputs.Wanted() {
		t.Errorf("got %+v, %v", back, err)
	}
	for name, wrong := range map[string]string{
		"an earlier version":  strings.Replace(text, `"v":2`, `"v":1`, 1),
		"no key":              strings.Replace(text, `"key":"`, `"no":"`, 1),
		"a glob that is none": strings.Replace(text, `"out/"`, `"../out"`, 1),
	} {
		if got, err := DecodeOrders(wrong); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	o.Files.Outputs.Paths = []string{strings.Repeat("x/", 400) + "y"}
	for range 200 {
		o.Files.Outputs.Paths = append(o.Files.Outputs.Paths, o.Files.Outputs.Paths[0])
	}
	if _, err = o.Encode(); err == nil {
		t.Error("orders that no environment takes are encoded")
	}
}

// FuzzAnswer: whatever the network says, nothing breaks, and nothing that was not
// signed counts.
func FuzzAnswer(f *testing.F) {
	f.Add("live 4500 abcdef\n")
	f.Add("end 0 00")
	f.Add("live -1 \x00")
	f.Add("live 9223372036854775808 ffff ffff")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := readAnswer(text, asked, "secret"); err == nil || a != (Answer{}) {
			t.Errorf("%q is believed: %+v", text, a)
		}
	})
}

// FuzzQuestion: whatever a handler is asked.
func FuzzQuestion(f *testing.F) {
	f.Add("attempt=a&run=b&nonce=c&sign=d")
	f.Add("attempt=%00&run=%0a&&&=;")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if _, err = readQuestion(v, []byte("key")); err == nil {
			t.Errorf("%q is believed", query)
		}
	})
}

// FuzzTold: whatever a task leaves as last words.
func FuzzTold(f *testing.F) {
	f.Add(string(Told{Begun: true, Cause: executor.TimedOut, ExitCode: 137, Signal: 9, Ran: time.Second}.encode()))
	f.Add(`{"v":1,"cause":200}`)
	f.Add(`{"v":1,"ran":-5,"signal":9e99}`)
	f.Fuzz(func(t *testing.T, text string) {
		told, ok := ReadTold(text)
		if ok && (told.Ran < 0 || told.Cause > executor.Declined || told.ExitCode > 255 || told.Usage.PeakMemory < 0) {
			t.Errorf("%q is taken: %+v", text, told)
		}
	})
}

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/audit"
)

// audited returns what the record has about somebody, the newest first.
func (u *users) audited(who string) []wire.AuditEntry {
	u.t.Helper()
	var list wire.List[wire.AuditEntry]
	w := u.as("operator", "GET", "/v1/audit?who="+who, "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
		u.t.Fatalf("%d, %v: %s", w.Code, err, w.Body)
	}
	return list.Items
}

// Of a refused submission the record says why it was refused and what it was to be, of which arguments are no part.
func TestARefusedSubmissionIsTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"name":"render","command":["sh","-c","secret"],"count":0}`:            `job "render", 0 tasks`,
		`{"command":["make","secret"],"env":{"KEY":"secret"},"no":1,"count":7}`: `command "make", 7 tasks`,
		`{"image":"alpine","no":1}`:                                             `image "alpine"`,
		`{"no":"secret"}`:                                                       `a job without a name or command`,
		`{"name":"` + strings.Repeat("n", 300) + `","no":1}`:                    `job "` + strings.Repeat("n", 80) + `…"`,
		`{"command":`:                         `11 bytes that are no job`,
		"{\"name\":\"two\\nlines\",\"no\":1}": `job "two lines"`,
		`{"name":["secret"],"command":[7,"secret"],"count":"secret","env":"secret","no":1}`: `a job without a name or command`,
	} {
		u := recordedUsers(t)
		w := u.as("alice", "POST", "/v1/jobs", body)
		list := u.audited("alice")
		if w.Code < 400 || len(list) != 1 || list[0].Status != w.Code || list[0].Asked != want || list[0].Why == "" {
			t.Errorf("%.60s: %d %+v", body, w.Code, list)
		}
	}
}

// What is refused of many lines is one entry, beside that of the request.
func TestRefusedLinesAreTold(t *testing.T) {
	u := recordedUsers(t)
	w := ask(u.Server, "POST", "/v1/jobs", wire.TypeNDJSON, "{\"command\":[\"true\"]}\n{\"x\":1}\n{}\n",
		"Authorization", "Bearer "+u.tokens["alice"])
	list := u.audited("alice")
	if w.Code != http.StatusAccepted || len(list) != 2 || !strings.HasPrefix(list[0].Why, "line 2: ") ||
		!strings.HasPrefix(list[0].Asked, "2 lines") || list[1].Why != "" {
		t.Errorf("%d %+v", w.Code, list)
	}
}

// A flood of refusals takes eleven entries a minute, and nobody else's place among them.
func TestAFloodOfRefusalsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []audit.Entry
		f := refusals{write: func(e audit.Entry) { written = append(written, e) }}
		admitted := map[string]int{}
		for minute := range 2 {
			for i := range 1000 {
				for _, who := range []string{"alice", "bob"} {
					if who == "bob" && i >= recordedRefusals {
						continue
					}
					if f.admit(who, audit.Entry{User: who, Why: fmt.Sprint(i)}) {
						admitted[who]++
					}
				}
			}
			<-time.After(refusalWindow)
			synctest.Wait()
			if got := written[minute:]; len(got) != 1 || got[0].User != "alice" || got[0].More != 990 || got[0].Why != "999" {
				t.Errorf("minute %d: %+v", minute, got)
			}
		}
		if admitted["alice"] != 2*recordedRefusals || admitted["bob"] != 2*recordedRefusals {
			t.Errorf("%v", admitted)
		}
		f.flush() // without a window
	})
}

//go:build attacks

package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const tesTasks = "/ga4gh/tes/v1/tasks"

// tes asks a site's service, and returns the status and what was answered.
func tes(t *testing.T, method, path, body string, header ...string) (status int, text string) {
	t.Helper()
	res := request(t, shared.Sites[0], method, path, body, append(header, "Content-Type", "application/json")...)
	b, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(b)
}

// tesRefused asks for what is refused: in the service's own form, in one line.
func tesRefused(t *testing.T, method, path, body string, header ...string) {
	t.Helper()
	status, text := tes(t, method, path, body, header...)
	var failure struct {
		StatusCode int `json:"status_code"`
		Msg        string
	}
	if err := json.Unmarshal([]byte(text), &failure); err != nil || status < 400 || status > 499 ||
		failure.StatusCode != status || failure.Msg == "" || strings.Contains(failure.Msg, "\n") {
		t.Errorf("%s %s %.100s: %d %.300s", method, path, body, status, text)
	}
}

// tesBody is a task with more fields.
func tesBody(more string) string {
	return `{"executors":[{"image":"alpine","command":["true"]}]` + more + `}`
}

// userToken returns the header by which a user of the first site asks, until it is revoked.
func userToken(t *testing.T, user string) (header []string, revoke func()) {
	t.Helper()
	operator := bearer(t, shared.Sites[0])
	status, text := tes(t, "POST", "/v1/tokens", fmt.Sprintf(`{"name":"attack","user":%q,"role":"user"}`, user), operator...)
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status/100 != 2 {
		t.Fatalf("%d %s", status, text)
	}
	return []string{"Authorization", "Bearer " + made.Token}, func() {
		if status, text := tes(t, "DELETE", "/v1/tokens/"+made.ID, "", operator...); status/100 != 2 {
			t.Errorf("%d %s", status, text)
		}
	}
}

// TestTESTasksThatClimb: files of the site, of the broker and of the container are named in all ways that lead out of
// what is opened; none is read, no task is made.
func TestTESTasksThatClimb(t *testing.T) {
	attacked(t)
	token := bearer(t, shared.Sites[0])
	for _, url := range []string{
		"file:///etc/passwd", "/etc/passwd", "file://" + dataOf(shared.Sites[0]) + "/key", "file:///../../etc/passwd", "file:///%2e%2e/etc/passwd",
		"file:////etc/passwd", "file://localhost/etc/passwd", "file://other/etc/passwd", "file:etc/passwd", "file:///proc/self/environ", "/dev/zero",
		"FILE:///etc/passwd", "file:///etc/passwd?x", "file:///etc/passwd#x", "http://169.254.169.254/", "https://127.0.0.1/", "s3://bucket/key",
		"gs://b/k", "ftp://h/f", "", "\x00", strings.Repeat("/a", 5000),
	} {
		for _, kind := range []string{"FILE", "DIRECTORY"} {
			text, err := json.Marshal(url)
			must(t, err)
			tesRefused(t, "POST", tesTasks, tesBody(fmt.Sprintf(`,"inputs":[{"path":"/a","url":%s,"type":%q}]`, text, kind)), token...)
			tesRefused(t, "POST", tesTasks, tesBody(fmt.Sprintf(`,"outputs":[{"path":"/a","url":%s,"type":%q}]`, text, kind)), token...)
		}
	}
	for _, path := range []string{"a", "../a", "/../a", "/a/../../b", "/", "", "/a/./b", "/" + strings.Repeat("x", 300), "/a\x00b", "/a\nb"} {
		text, err := json.Marshal(path)
		must(t, err)
		tesRefused(t, "POST", tesTasks, tesBody(fmt.Sprintf(`,"inputs":[{"path":%s,"content":"x"}]`, text)), token...)
		tesRefused(t, "POST", tesTasks, fmt.Sprintf(`{"executors":[{"image":"a","command":["b"],"workdir":%s,"stdin":"x"}]}`, text), token...)
	}
}

// TestTESBodies: what is no task, wrongly typed, huge, deep, or of a great many values is refused with a sentence.
func TestTESBodies(t *testing.T) {
	attacked(t)
	token := bearer(t, shared.Sites[0])
	for _, body := range []string{
		"", "null", "[]", "1", `"x"`, "{", `{"executors":1}`, `{"executors":[1]}`, `{"executors":[{"image":1}]}`, tesBody(`,"inputs":{}`),
		tesBody(`,"tags":{"a":1}`), tesBody(`,"resources":[]`), tesBody(`,"resources":{"cpu_cores":1e99}`), tesBody(`,"volumes":[{}]`),
		tesBody("") + tesBody(""), "\xff\xfe" + tesBody(""),
		strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<20), `{"executors":[` + strings.Repeat("{},", 2<<20) + `{}]}`,
		`{"tags":{` + strings.Repeat(`"":"",`, 1<<20) + `"":""}}`, tesBody(`,"name":"` + strings.Repeat("x", 9<<20) + `"`),
	} {
		tesRefused(t, "POST", tesTasks, body, token...)
	}
	for _, query := range []string{"view=ALL", "state=x", "page_size=0", "page_size=2048", "page_size=-1", "page_token=AAAA", "tag_value=a"} {
		tesRefused(t, "GET", tesTasks+"?"+query, "", token...)
	}
}

// TestTESTasksOfOthers: users see, list and end their own tasks alone, and another site's token opens nothing.
func TestTESTasksOfOthers(t *testing.T) {
	attacked(t)
	operator := bearer(t, shared.Sites[0])
	status, text := tes(t, "POST", tesTasks, tesBody(`,"name":"theirs"`), operator...)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	defer func() {
		if status, text := tes(t, "POST", tesTasks+"/"+made.ID+":cancel", "", operator...); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
	}()
	mallory, revoke := userToken(t, "mallory")
	defer revoke()
	for _, c := range [][2]string{{"GET", ""}, {"GET", "?view=FULL"}, {"POST", ":cancel"}, {"POST", "%3Acancel"}} {
		tesRefused(t, c[0], tesTasks+"/"+made.ID+c[1], "", mallory...)
	}
	if status, text := tes(t, "GET", tesTasks+"?view=FULL", "", mallory...); status != http.StatusOK || strings.Contains(text, "theirs") {
		t.Errorf("%d %s", status, text)
	}
	for _, id := range []string{"site-2.1", "site-1.99999999", "site-1.0", "site-1." + strings.Repeat("9", 400), "%00", "site-1.1%2f..%2f2"} {
		tesRefused(t, "GET", tesTasks+"/"+id, "", operator...)
	}
	if status, _ := tes(t, "GET", tesTasks+"/"+made.ID, "", operator...); status != http.StatusOK {
		t.Errorf("its owner: %d", status)
	}
	foreign := bearer(t, shared.Sites[1])
	if status, _ := tes(t, "GET", tesTasks+"/"+made.ID, "", foreign...); status != http.StatusUnauthorized {
		t.Errorf("another site's token: %d", status)
	}
}

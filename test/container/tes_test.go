//go:build container

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestTES: a task of several executors gets a file and a folder of its site, runs in a container, and leaves files in a
// folder of its site, as the user of a workflow engine sees it.
func TestTES(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "in/sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "in/a"), []byte("a\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "in/sub/b"), []byte("b\n"), 0o600))
	b := newSite(t, "site-1", append(containers(e), "--tes-roots", "@site="+root, "--bootstrap")...)
	sh := func(script string) string {
		return fmt.Sprintf(`"image":%q,"command":["/bin/sh","-c",%q]`, engines.Image, script)
	}
	body := fmt.Sprintf(`{"name":"n","volumes":["/vol"],
		"inputs":[{"path":"/in","url":%q,"type":"DIRECTORY"},{"path":"/one","url":"file://%s/in/a"}],
		"executors":[{%s,"stdout":"/vol/out"},{%s,"stdin":"/vol/out","stdout":"/res/x.txt","workdir":"/w"}],
		"outputs":[{"path":"/res/*.txt","path_prefix":"/res","url":%q}]}`,
		root+"/in", root, sh("cat /in/a /in/sub/b /one; exit 3")+`,"ignore_error":true`, sh("cat; pwd"), root+"/out")
	var made, got struct {
		ID, State string
		Logs      []struct {
			Logs []struct {
				ExitCode int `json:"exit_code"`
			}
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	answer, _, err := b.Do(t.Context(), http.MethodPost, "/ga4gh/tes/v1/tasks", header, []byte(body))
	must(t, err)
	must(t, json.Unmarshal(answer, &made))
	b.Await("the task's end", func() error {
		answer, _, err := b.Do(t.Context(), http.MethodGet, "/ga4gh/tes/v1/tasks/"+made.ID+"?view=FULL", nil, nil)
		if err == nil {
			err = json.Unmarshal(answer, &got)
		}
		if err == nil && got.State != "COMPLETE" {
			err = errors.New(string(answer))
		}
		return err
	})
	text, err := os.ReadFile(filepath.Join(root, "out/x.txt"))
	must(t, err)
	if string(text) != "a\nb\na\n/w\n" || got.Logs[0].Logs[0].ExitCode != 3 || got.Logs[0].Logs[1].ExitCode != 0 {
		t.Errorf("%q %+v", text, got)
	}
}

package jobcmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
)

// The output of several tasks is followed over broken connections, without loss or repetition; that of another attempt
// is another one, and one whose beginning cannot be known again is given up.
func TestFollowedTasksGoOn(t *testing.T) {
	piece := func(task, attempt uint32, text string) wire.Output {
		return wire.Output{Task: &task, Attempt: attempt, Text: text}
	}
	connections := [][]wire.Output{
		{piece(0, 1, "a\n"), piece(1, 1, "x\n"), piece(0, 1, "b")},
		{piece(1, 1, "x\ny\n"), piece(0, 1, "a\n")}, // task 0 has not come as far as before
		{piece(0, 1, "a\nb\n"), piece(1, 2, "x\n"), piece(1, 2, "z\n")},
	}
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(asked.Add(1)) - 1
		enc := json.NewEncoder(w)
		for _, o := range connections[n] {
			_ = enc.Encode(o)
		}
		_ = http.NewResponseController(w).Flush()
		if n < len(connections)-1 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	code, out, errs := runCLI(t, "", "logs", "site-1.1", "--all", "--follow", "--addr", srv.URL)
	want := "site-1.1/0: a\nsite-1.1/1: x\nsite-1.1/0: b\nsite-1.1/1: y\nsite-1.1/0: \nsite-1.1/1: x\nsite-1.1/1: z\n"
	if code != 0 || out != want {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	asked.Store(0)
	if code, out, errs = runCLI(t, "", "logs", "site-1.1", "--all", "--follow", "--tail", "9", "--addr", srv.URL); code == 0 || asked.Load() != 1 {
		t.Errorf("the last lines: exit %d, asked %d times, %s\n%s", code, asked.Load(), errs, out)
	}
	if resumable(client.OutputQuery{Follow: true, States: []string{"running"}}) {
		t.Error("the tasks in a state may be others")
	}
}

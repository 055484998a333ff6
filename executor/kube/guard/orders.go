package guard

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
)

// Places in a pod.
const (
	Dir     = "/cloudshare/bin"   // a volume of the pod, read-only for the task
	Program = Dir + "/cloudshare" // this program in it
	Work    = "/cloudshare/work"  // the task's private directory
	// told is where Kubernetes takes a container's last words from.
	told = "/dev/termination-log"
)

// Variable holds the orders of a container's guard. The task does not see it.
const Variable = "CLOUDSHARE_WATCHDOG"

// Orders are what a guard is told with its pod; they never change.
type Orders struct {
	Version int    `json:"v"`
	URL     string `json:"url"` // of the handler's listener, without a path
	Attempt string `json:"attempt"`
	Secret  string `json:"secret"` // of the attempt: see [SecretOf]
	// Grace is the time between TERM and KILL; Timeout 0 = none.
	Grace   time.Duration `json:"grace"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Patience is how long it asks for leave to begin.
	Patience time.Duration `json:"patience"`
	// Free: its task has no fence, so it asks for no leave.
	Free bool `json:"free,omitempty"`
	// Files are those of its task, nil = it has none.
	Files *Files `json:"files,omitempty"`
}

// Files are what a pod is told of the files of its task.
type Files struct {
	Key      []byte        `json:"key"` // of the handler
	Fetch    bool          `json:"fetch,omitempty"`
	Fetching time.Duration `json:"fetching,omitempty"` // at most
	// Outputs are those that it is to leave, and Sending is how long they may take, at most.
	Outputs executor.Outputs `json:"outputs,omitzero"`
	Sending time.Duration    `json:"sending,omitempty"`
}

func (f *Files) check() error {
	switch {
	case f == nil:
		return nil
	case len(f.Key) != ed25519.PublicKeySize:
		return errors.New("orders with files and no handler's key")
	case f.Fetching < 0 || f.Sending < 0:
		return errors.New("orders with negative times")
	}
	return f.Outputs.Check()
}

// client returns that of an attempt's pod.
func (o *Orders) client() *carry.Client {
	return carry.NewClient(o.URL, o.Files.Key, o.Attempt, TokenOf(o.Secret, o.Attempt))
}

const (
	// version of the questions, and of the orders.
	version = 1
	// withFiles is that of orders with files: who does not know of them begins nothing.
	withFiles = 2
)

func (o *Orders) version() int {
	if o.Files != nil {
		return withFiles
	}
	return version
}

// maxOrders bounds the variable, in bytes: systems take 128 KiB.
const maxOrders = 100 << 10

// Encode returns the variable's value.
func (o Orders) Encode() (string, error) {
	o.Version = o.version()
	if err := o.check(); err != nil {
		return "", err
	}
	b, err := json.Marshal(o)
	if err == nil && len(b) > maxOrders {
		err = fmt.Errorf("%d bytes: at most %d", len(b), maxOrders)
	}
	return string(b), err
}

// DecodeOrders reads the variable's value.
func DecodeOrders(text string) (o Orders, err error) {
	if len(text) > maxOrders {
		return o, fmt.Errorf("orders of %d bytes: at most %d", len(text), maxOrders)
	}
	if err = json.Unmarshal([]byte(text), &o); err != nil {
		return o, fmt.Errorf("read orders: %w", err)
	}
	return o, o.check()
}

func (o Orders) check() error {
	switch {
	case o.Version != o.version():
		return fmt.Errorf("orders of version %d: this program knows %d and %d only; let its image be the broker's version",
			o.Version, version, withFiles)
	case !isName(o.Attempt) || !isName(o.Secret):
		return errors.New("orders without a name or a secret")
	case o.Grace < 0 || o.Timeout < 0 || o.Patience < 0:
		return errors.New("orders with negative times")
	}
	return errors.Join(CheckURL(o.URL), o.Files.check())
}

// CheckURL says what is wrong with the address of a handler's listener.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || strings.TrimRight(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("url %.200q: must be http://HOST:PORT as pods reach the listener", text)
	}
	return nil
}

// maxName bounds names and secrets.
const maxName = 256

// isName: what signatures are made of is told apart by its characters.
func isName(text string) bool {
	if text == "" || len(text) > maxName {
		return false
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// split takes the orders out of an environment.
func split(environ []string) (orders string, rest []string) {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, Variable+"="); ok {
			orders = v
		} else {
			rest = append(rest, kv)
		}
	}
	return orders, rest
}

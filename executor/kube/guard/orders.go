package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Places in a pod.
const (
	Dir     = "/cloudshare/bin"   // a volume of the pod, read-only for the task
	Program = Dir + "/cloudshare" // this program in it
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
}

// version of the questions, and of the orders.
const version = 1

// maxOrders bounds the variable, in bytes.
const maxOrders = 8 << 10

// Encode returns the variable's value.
func (o Orders) Encode() (string, error) {
	o.Version = version
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
	case o.Version != version:
		return fmt.Errorf("orders of version %d: this program knows %d only; let its image be the broker's version", o.Version, version)
	case !isName(o.Attempt) || !isName(o.Secret):
		return errors.New("orders without a name or a secret")
	case o.Grace < 0 || o.Timeout < 0 || o.Patience < 0:
		return errors.New("orders with negative times")
	}
	return CheckURL(o.URL)
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

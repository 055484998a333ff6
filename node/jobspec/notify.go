package jobspec

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Bounds of what a job wants sent.
const (
	MaxHooks   = 4    // of one job
	MaxHookURL = 2048 // bytes
)

// Hook is a URL that the owner's broker sends a notice to, of a job that has ended. It stays with that broker: no text
// of a payload has it.
type Hook struct {
	URL string `json:"url"`
	// On are names of HookEvents, in their order. Invariant: at least one.
	On []string `json:"on"`
}

// The ends that a hook may be on.
const (
	HookEnded  = "ended"  // whatever the end
	HookFailed = "failed" // an end other than success
)

// HookEvents returns the names that a hook's on may hold.
func HookEvents() []string { return []string{HookEnded, HookFailed} }

// Wants reports whether a hook is on an end in a state, by its name.
func (h *Hook) Wants(state string) bool {
	return slices.Contains(h.On, HookEnded) || state != "succeeded" && slices.Contains(h.On, HookFailed)
}

var hookFields = [...]string{"url", "on"}

// notify reads the list of hooks.
func (p *specParser) notify(name string) error {
	if p.null() {
		return nil
	}
	if p.peek() != '[' {
		return p.wrong(name, "a list of objects")
	}
	return p.array(func() error {
		n := len(p.spec.Notify)
		field := fmt.Sprintf("%s.%d", name, n)
		if n == MaxHooks {
			return &SpecError{Field: name, Reason: fmt.Sprintf("has more than %d", MaxHooks)}
		}
		if p.peek() != '{' {
			return p.wrong(field, "an object")
		}
		h := Hook{}
		seen := uint32(0)
		err := p.object(func(key string) error { return p.hookField(&h, &seen, field+".", key) })
		if err != nil {
			return err
		}
		if len(h.On) == 0 {
			h.On = []string{HookEnded}
		}
		p.spec.Notify = append(p.spec.Notify, h)
		return p.spec.checkHook(field)
	})
}

func (p *specParser) hookField(h *Hook, seen *uint32, field, key string) error {
	bit, err := knownIn(hookFields[:], *seen, field, key)
	if err != nil {
		return err
	}
	*seen |= bit
	if key == "url" {
		return p.text(field+key, &h.URL)
	}
	if err := p.strings(field+key, &h.On); err != nil {
		return err
	}
	for _, on := range h.On {
		if !slices.Contains(HookEvents(), on) {
			return &SpecError{Field: field + key, Value: quoted(on), Reason: "must hold " + strings.Join(HookEvents(), " or ")}
		}
	}
	h.On = slices.DeleteFunc(HookEvents(), func(on string) bool { return !slices.Contains(h.On, on) })
	return nil
}

// checkHook checks the last of the hooks.
func (s *Spec) checkHook(field string) error {
	last := len(s.Notify) - 1
	text := s.Notify[last].URL
	if why := checkHookURL(text); why != "" {
		return &SpecError{Field: field + ".url", Value: quoted(text), Reason: why}
	}
	if slices.ContainsFunc(s.Notify[:last], func(h Hook) bool { return h.URL == text }) {
		return &SpecError{Field: field + ".url", Reason: "stands in an earlier one, too: a notice is sent to each once"}
	}
	return nil
}

// checkHookURL says why no notice can be sent to a URL, "" if one can. Which hosts may be asked the broker says.
func checkHookURL(text string) string {
	switch {
	case text == "":
		return "is missing: where to send a notice, such as https://host/path"
	case len(text) > MaxHookURL || !printable(text):
		return fmt.Sprintf("must have at most %d bytes and no control or formatting characters", MaxHookURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return "must be a URL such as https://host/path: notices are sent by https only"
	case u.User != nil:
		return "must hold no name and password: a signature says who sends"
	case u.Fragment != "":
		return "must have no #fragment: it would not be sent"
	}
	return ""
}

// meaningOf adds the hooks, which no text of a payload has, to a hash of the texts.
func (s *Spec) meaningOf(texts [32]byte) [32]byte {
	if len(s.Notify) == 0 {
		return texts
	}
	list, err := json.Marshal(s.Notify)
	if err != nil {
		panic("hooks do not encode: " + err.Error()) // texts always do
	}
	return sha256.Sum256(append(texts[:], list...))
}

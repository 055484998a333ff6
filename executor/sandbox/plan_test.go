package sandbox

import (
	"reflect"
	"strings"
	"testing"
)

// TestPlansThatCannotBe: what would undo a sandbox is refused before it is made.
func TestPlansThatCannotBe(t *testing.T) {
	good := Plan{UID: 7, GID: 7, Share: []string{"/data/sets"}, Hide: []string{"/var/lib/cloudshare"}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	if back, err := Decode(good.Encode()); err != nil || !reflect.DeepEqual(back, good) {
		t.Errorf("got %+v, %v", back, err)
	}
	for want, change := range map[string]func(*Plan){
		"neither root":        func(p *Plan) { p.UID = 0 },
		"nor its group":       func(p *Plan) { p.GID = 0 },
		"not / itself":        func(p *Plan) { p.Share = []string{"/"} },
		"give a whole path":   func(p *Plan) { p.Share = []string{"data"} },
		"without \"..\"":      func(p *Plan) { p.Share = []string{"/data/../etc"} },
		"the broker's own":    func(p *Plan) { p.Share = []string{"/var/lib"} },
		"lies in":             func(p *Plan) { p.Share = []string{"/var/lib/cloudshare/local/slots"} },
		"read-only":           func(p *Plan) { p.Share = []string{"/bin"} },
		"of this machine":     func(p *Plan) { p.Share = []string{"/run"} },
		"have a /proc":        func(p *Plan) { p.Share = []string{"/proc/sys"} },
		"have a /.cloudshare": func(p *Plan) { p.Share = []string{"/.cloudshare/work"} },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error with %q", bad, err, want)
		}
	}
	if _, err := Decode(`{"UID":0}`); err == nil {
		t.Error("a plan for root was taken")
	}
}

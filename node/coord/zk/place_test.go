package zk

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	p, err := ParsePlace("a:1,b:2/x/y/")
	if err != nil || len(p.Servers) != 2 || p.Chroot != "/x/y" || p.String() != "a:1,b:2/x/y" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "a", "a:1,", "a:1//x", "a:1/..", "a:1/zookeeper", "a:1/b c", ":1", "a:"} {
		if _, err := ParsePlace(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCredentialsAreNeeded(t *testing.T) {
	p := Place{Servers: []string{"a:1"}}
	if err := p.checkAccess(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("without any: %v", err)
	}
}

package node

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestEventIDsFromOutside(t *testing.T) {
	for _, s := range []string{"0", "7.1", "7.1.9", fmt.Sprintf("7.%d.9", uint32(math.MaxUint32))} {
		if id, err := ParseEventID(s); err != nil || id.String() != s {
			t.Errorf("%q is read as %q, %v", s, id, err)
		}
	}
	for _, s := range []string{"", ".", "1.", "-1", "1.2.3.4", "1.4294967296", "x", "1e3", strings.Repeat("1", 100)} {
		if id, err := ParseEventID(s); !errors.Is(err, ErrBadCursor) {
			t.Errorf("%.20q is read as %v, %v", s, id, err)
		}
	}
}

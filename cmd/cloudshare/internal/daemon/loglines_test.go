package daemon

import (
	"bytes"
	"testing"
)

func TestLastLinesAreBounded(t *testing.T) {
	r := &lineRing{}
	for i := range 5000 {
		if _, err := r.Write(bytes.Repeat([]byte{'a' + byte(i%26)}, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Write(make([]byte, 10*maxLastBytes)); err != nil {
		t.Fatal(err)
	}
	if n := len(r.bytes()); n > maxLastBytes || n < maxLastBytes/2 {
		t.Errorf("%d bytes", n)
	}
}

package replay

import (
	"context"
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/node/coord/compare"
)

// signedOften returns statements of one entry, all different.
func signedOften(n int) []Signed {
	list := make([]Signed, n)
	for i := range list {
		list[i].Statement = compare.Statement{Site: "a", Signature: []byte{byte(i), byte(i >> 8), byte(i >> 16)}}
		list[i].Entry = 5
	}
	return list
}

// What is said of one entry is bounded and goes by the number of statements, not by its square: 40,000 take no minutes.
func TestStatementsOfOneEntryAreBounded(t *testing.T) {
	list := signedOften(maxOfEntry)
	by, err := byEntry(t.Context(), list, list)
	if err != nil || len(by[5]) != maxOfEntry || by[5][0].elsewhere {
		t.Errorf("%d, %v", len(by[5]), err)
	}
	if _, err = byEntry(t.Context(), signedOften(maxOfEntry+1), nil); err == nil {
		t.Error("more than a federation signs are taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = byEntry(ctx, list, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFreed switches a disk that hangs back to fast.
func TestFreed(t *testing.T) {
	d := delay{filepath.Join(t.TempDir(), "delay")}
	say := func(text string) {
		if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("1h")
	done := make(chan struct{})
	go func() { d.wait(); close(done) }()
	select {
	case <-done:
		t.Fatal("it did not hang")
	case <-time.After(3 * lookEvery):
	}
	say("0")
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it still hangs")
	}
}

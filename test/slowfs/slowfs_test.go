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
	case <-time.After(time.Minute):
		t.Fatal("it still hangs")
	}
}

// TestDelays: how long a file's text has a sync take; what is none has it take no longer. A real disk under load may
// take longer than a delay, so the mount is not asked.
func TestDelays(t *testing.T) {
	d := delay{filepath.Join(t.TempDir(), "delay")}
	if long, ok := d.read(); long != 0 || ok {
		t.Errorf("without a file: %v, %v", long, ok)
	}
	for text, want := range map[string]time.Duration{
		"": 0, "\n": 0, "0": 0, "nonsense\n": 0, "-1s": 0, "200ms\n": 200 * time.Millisecond, "999h": maxDelay,
	} {
		if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if long, _ := d.read(); long != want {
			t.Errorf("%q: %v, want %v", text, long, want)
		}
	}
}

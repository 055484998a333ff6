package outbound

import (
	"os"
	"testing"
)

// TestStackAnswers: the loop that carries packets answers whenever it is asked, also after one has come that is none,
// and not after its end.
func TestStackAnswers(t *testing.T) {
	device, task, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	n, err := newStack(device)
	if err != nil {
		t.Fatal(err)
	}
	answers, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		n.run(func() { answers <- struct{}{} })
	}()
	for range 3 {
		n.ask()
		<-answers
		if _, err = task.WriteString("no packet"); err != nil {
			t.Fatal(err)
		}
	}
	if err = task.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	n.ask()
	select {
	case <-answers:
		t.Error("answered after its end")
	default:
	}
	n.stack.Close()
	n.link.Close()
	device.Close()
}

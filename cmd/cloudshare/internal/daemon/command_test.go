package daemon

import (
	"os"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// lineChan tells of each line.
type lineChan chan string

func (c lineChan) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

// TestSignalChangesTheLogLevel and the end of the broker undoes it.
func TestSignalChangesTheLogLevel(t *testing.T) {
	before := zerolog.GlobalLevel()
	cfg := config.Default()
	cfg.LogLevel = "error"
	said := make(lineChan)
	end := louder(cfg, zerolog.New(said))
	for _, want := range []zerolog.Level{zerolog.DebugLevel, zerolog.ErrorLevel} {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		line := <-said
		if got := zerolog.GlobalLevel(); got != want {
			t.Errorf("level %s, want %s: %s", got, want, line)
		}
	}
	end()
	if got := zerolog.GlobalLevel(); got != before {
		t.Errorf("level %s stays", got)
	}
}

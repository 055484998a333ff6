package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// files is the folder that is tested, root that of the repository.
const (
	root  = "../.."
	files = root + "/deploy"
	chart = files + "/helm/cloudshare"
)

// cloudshare is the binary, built once for all tests.
var cloudshare string

func TestMain(m *testing.M) {
	os.Exit(testbed.BuildAndRun(func(binary string) int {
		cloudshare = binary
		return m.Run()
	}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	must(t, err)
	return string(b)
}

// parsed reads YAML, or JSON, which is some.
func parsed[T any](t testing.TB, text string) (v T) {
	t.Helper()
	must(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

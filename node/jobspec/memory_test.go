package jobspec

import (
	"strings"
	"testing"
)

// Found by use: 4GB and 1.5Gi were refused without saying what to write.
func TestMemorySuggestsWhatIsMeant(t *testing.T) {
	for text, want := range map[string]int64{
		"1.5Gi": 1536, "1.5GiB": 1536, "4GiB": 4096, "512MiB": 512, "0.5Mi": 1, "0.001Gi": 2, "1.25M": 2, "4G": 3815,
	} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%s: %d MiB, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"4GB":   `write "4Gi" (4096 MiB) or "4G" (3815 MiB)`,
		"4gb":   `write "4Gi" (4096 MiB) or "4G" (3815 MiB)`,
		"4g":    `write "4Gi" (4096 MiB) or "4G" (3815 MiB)`,
		"1.5GB": `write "1.5Gi" (1536 MiB) or "1.5G" (1431 MiB)`,
		"512MB": `write "512Mi" (512 MiB) or "512M" (489 MiB)`,
		"512m":  `write "512Mi" (512 MiB) or "512M" (489 MiB)`,
		"1K":    `write "1Ki" (1 MiB) or "1k" (1 MiB)`,
		"2 TB":  `write "2Ti" (2097152 MiB) or "2T" (1907349 MiB)`,
		"1.Gi":  wantMemory, "1.2345Gi": wantMemory, ".5Gi": wantMemory, "1.5": wantMemory, "1.5.5Gi": wantMemory,
		"GB": wantMemory, "4XB": wantMemory,
		"-1Mi": wantMemory, "+1Mi": wantMemory, "99999999999999999999GB": wantMemory,
		"18446744073709551615Ti": wantMemory, "9223372036854775807": wantMemory, "": wantMemory,
	} {
		_, err := ParseMemory(text)
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), wantMemory) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

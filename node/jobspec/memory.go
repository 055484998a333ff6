package jobspec

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// memoryUnit is a unit of bytes that ParseMemory reads.
type memoryUnit struct {
	name  string
	bytes uint64
}

// memoryUnits are written as in Kubernetes; binary ones also with a B, which changes nothing.
var memoryUnits = []memoryUnit{
	{"", 1},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"k", 1e3},
	{"M", 1e6},
	{"G", 1e9},
	{"T", 1e12},
}

// maxDecimals bounds the decimals of a quantity such as 1.5Gi.
const maxDecimals = 3

// ParseMemory is ParseBytes in MiB, rounded up.
func ParseMemory(text string) (mib int64, err error) {
	bytes, err := ParseBytes(text)
	return toMiB(bytes), err
}

// ParseBytes reads a quantity of bytes such as "256Mi" or "1.5Gi", rounded up. The error says what to write, without
// repeating the text: "4GB" means 4 GB to some and 4 GiB to others, so it names both.
func ParseBytes(text string) (bytes int64, err error) {
	digits := len(text)
	for digits > 0 && (text[digits-1] < '0' || text[digits-1] > '9') {
		digits--
	}
	amount, unit := text[:digits], text[digits:]
	i := slices.IndexFunc(memoryUnits, func(u memoryUnit) bool { return u.name == unit })
	if i < 0 {
		return 0, errors.New(wantMemory + suggestMemory(amount, unit))
	}
	bytes, ok := toBytes(amount, memoryUnits[i].bytes)
	if !ok {
		return 0, errors.New(wantMemory)
	}
	return bytes, nil
}

// FormatBytes writes a quantity that ParseBytes reads: a whole number of the largest binary unit.
func FormatBytes(n int64) string {
	for i := 4; i > 0 && n > 0; i-- {
		if u := memoryUnits[i]; n%int64(u.bytes) == 0 {
			return strconv.FormatInt(n/int64(u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// wantMemory says what a quantity looks like.
const wantMemory = `must be a quantity such as "256Mi" or "2Gi"`

func toMiB(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// toBytes multiplies a decimal number by a unit of bytes, exactly, and rounds up.
func toBytes(amount string, unit uint64) (int64, bool) {
	whole, part, pointed := strings.Cut(amount, ".")
	if pointed && (len(part) == 0 || len(part) > maxDecimals || unit == 1) {
		return 0, false
	}
	scale := uint64(1)
	for range part {
		scale *= 10
	}
	n, err := strconv.ParseUint(whole+part, 10, 64)
	if err != nil || whole == "" {
		return 0, false
	}
	hi, lo := bits.Mul64(n, unit)
	if hi >= scale {
		return 0, false
	}
	bytes, rest := bits.Div64(hi, lo, scale)
	if rest > 0 {
		bytes++
	}
	if bytes > math.MaxInt64-1<<20 {
		return 0, false
	}
	return int64(bytes), true
}

// suggestMemory suggests quantities for an unknown unit, such as GB or g.
func suggestMemory(amount, unit string) string {
	letter := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(unit)), "b"), "i")
	at := strings.Index("kmgt", letter)
	if len(letter) != 1 || at < 0 {
		return ""
	}
	var meant []string
	for _, u := range []memoryUnit{memoryUnits[1+at], memoryUnits[9+at]} {
		if bytes, ok := toBytes(amount, u.bytes); ok {
			meant = append(meant, fmt.Sprintf("%q (%d MiB)", amount+u.name, toMiB(bytes)))
		}
	}
	if len(meant) == 0 {
		return ""
	}
	return "; write " + strings.Join(meant, " or ")
}

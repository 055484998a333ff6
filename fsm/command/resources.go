package command

import (
	"fmt"
	"strings"
)

// Resources are those of one task, or those free on one machine.
type Resources struct {
	MilliCPU int64 // 1000 = one core
	MemMiB   int64 // 0 = no limit
	GPU      int64
}

// FitsIn reports whether r is within room.
func (r Resources) FitsIn(room Resources) bool {
	return r.MilliCPU <= room.MilliCPU && r.MemMiB <= room.MemMiB && r.GPU <= room.GPU
}

// Greater returns the greater of both for every part.
func (r Resources) Greater(o Resources) Resources {
	return Resources{max(r.MilliCPU, o.MilliCPU), max(r.MemMiB, o.MemMiB), max(r.GPU, o.GPU)}
}

// Lesser returns the lesser of both for every part.
func (r Resources) Lesser(o Resources) Resources {
	return Resources{min(r.MilliCPU, o.MilliCPU), min(r.MemMiB, o.MemMiB), min(r.GPU, o.GPU)}
}

// Plus returns the sum.
func (r Resources) Plus(o Resources) Resources {
	return Resources{r.MilliCPU + o.MilliCPU, r.MemMiB + o.MemMiB, r.GPU + o.GPU}
}

// Minus returns the difference; its parts may be below 0.
func (r Resources) Minus(o Resources) Resources {
	return Resources{r.MilliCPU - o.MilliCPU, r.MemMiB - o.MemMiB, r.GPU - o.GPU}
}

// String lists the parts that are not zero.
func (r Resources) String() string {
	var parts []string
	switch {
	case r.MilliCPU == 1000:
		parts = append(parts, "1 core")
	case r.MilliCPU != 0 || r == Resources{}:
		parts = append(parts, decimal(r.MilliCPU, 1000)+" cores")
	}
	if r.MemMiB > 0 {
		parts = append(parts, memoryText(r.MemMiB))
	}
	switch {
	case r.GPU == 1:
		parts = append(parts, "1 GPU")
	case r.GPU > 1:
		parts = append(parts, fmt.Sprintf("%d GPUs", r.GPU))
	}
	return strings.Join(parts, ", ")
}

// memoryText writes MiB in the unit that people would choose, rounded to a tenth of it.
func memoryText(mib int64) string {
	unit, size := "MiB", int64(1)
	for _, larger := range []string{"GiB", "TiB"} {
		if mib >= size<<10 {
			unit, size = larger, size<<10
		}
	}
	return decimal((mib*10+size/2)/size, 10) + " " + unit
}

// decimal writes n/of without trailing zeros; of is a power of ten.
func decimal(n, of int64) string {
	text := fmt.Sprintf("%d.%0*d", n/of, len(fmt.Sprint(of))-1, n%of)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

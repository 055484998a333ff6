package cli

import "strconv"

// Bytes words a number of bytes for people: "17 B", "1.5 MiB".
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	amount, unit := float64(n)/(1<<10), 0
	for ; amount >= 1<<10 && unit < len(units)-1; unit++ {
		amount /= 1 << 10
	}
	decimals := 1
	if amount >= 100 {
		decimals = 0
	}
	return strconv.FormatFloat(amount, 'f', decimals, 64) + " " + units[unit:unit+1] + "iB"
}

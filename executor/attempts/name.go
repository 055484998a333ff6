package attempts

import "strings"

// What names are made of.
const (
	lowerDigits  = "abcdefghijklmnopqrstuvwxyz0123456789"
	maxNameBytes = 200
)

// ValidName reports whether an attempt's name can be a file's name: [a-z0-9][a-z0-9.-]*, at most 200 bytes.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxNameBytes && strings.IndexByte(lowerDigits, name[0]) >= 0 &&
		strings.Trim(name, lowerDigits+".-") == ""
}

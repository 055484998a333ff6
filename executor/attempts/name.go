package attempts

import "regexp"

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,199}$`)

// ValidName reports whether an attempt's name can be a file's name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

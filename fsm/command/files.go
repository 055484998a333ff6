package command

import (
	"slices"
	"strings"
)

// filesPrefix begins the labels by which a machine says how many bytes the files of a task may take there, what it is
// given and what it may leave together: one label for each class up to its bound. Brokers set them; neither sites nor
// jobs name them themselves. A label's value is FilesAll, or the site's own name: then the tasks of that site alone
// may take as much. A job with files has the selector of FilesSelector, so machines are matched with it as with any
// label.
const filesPrefix = "cloudshare/files-"

// FilesAll is the value of a label of files that promises its class to the tasks of all sites. No site is called so:
// no site's name has a dot.
const FilesAll = "all.sites"

// fileClass is how much the files of a task may take.
type fileClass struct {
	label string
	bytes int64
	words string
}

// fileClasses are in their order, each four times the one before, so that no job above 1 GiB requires four times what
// the files of its tasks may take. The largest is as much as the files of a task may ever have.
var fileClasses = [...]fileClass{
	{filesPrefix + "1g", 1 << 30, "1 GiB"},
	{filesPrefix + "4g", 4 << 30, "4 GiB"},
	{filesPrefix + "16g", 16 << 30, "16 GiB"},
	{filesPrefix + "64g", 64 << 30, "64 GiB"},
	{filesPrefix + "256g", 256 << 30, "256 GiB"},
	{filesPrefix + "1t", 1 << 40, "1 TiB"},
	{filesPrefix + "4t", MaxOutputBytes, "4 TiB"},
}

// FilesSelector returns what a job whose tasks' files take so many bytes requires of machines: room for the least class
// that holds them, for everybody's tasks or for those of its own site.
//
// REQUIRES: 0 ≤ bytes ≤ MaxOutputBytes.
func FilesSelector(owner string, bytes int64) string {
	i := slices.IndexFunc(fileClasses[:len(fileClasses)-1], func(c fileClass) bool { return bytes <= c.bytes })
	if i < 0 {
		i = len(fileClasses) - 1
	}
	r := Selector{Key: fileClasses[i].label, Values: []string{FilesAll, owner}}
	slices.Sort(r.Values)
	return r.String()
}

// IsFilesSelector reports whether a selector in canonical form is about a label of files.
func IsFilesSelector(text string) bool { return FilesWish(text) != "" }

// FilesWish returns for people what a selector about a label of files, or that label, asks for; "" for all others.
func FilesWish(text string) string {
	text = strings.TrimPrefix(text, "!")
	for _, c := range fileClasses {
		if isAbout(text, c.label) {
			return "room for files of up to " + c.words
		}
	}
	return ""
}

// FilesLent returns the bound of the largest class of files that a machine may promise, 0 = none: it can ever take so
// many bytes, and something of the class now.
func FilesLent(now, ever int64) (most int64) {
	for _, c := range fileClasses {
		if c.bytes > ever || now <= most {
			break
		}
		most = c.bytes
	}
	return most
}

// FilesLabels returns the labels of a site's machine that takes files: lendMax bytes of a task of another site, and
// ownMax of one of its own.
func FilesLabels(site string, lendMax, ownMax int64) map[string]string {
	labels := map[string]string{}
	for _, c := range fileClasses {
		switch {
		case c.bytes <= lendMax:
			labels[c.label] = FilesAll
		case c.bytes <= ownMax:
			labels[c.label] = site
		}
	}
	return labels
}

package config

import (
	"fmt"
	"strings"
	"time"
)

// Reference is CONFIG.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(configIntro)
	b.WriteString("| key | default | meaning |\n|---|---|---|\n")
	for _, f := range Fields() {
		value := fmt.Sprint(f.value)
		switch v := f.value.(type) {
		case time.Duration:
			value = spoken(v)
		case []string:
			value = strings.Join(v, ",")
		}
		if value == "" {
			value = "(empty)"
		}
		doc := f.doc
		if f.secret {
			doc += "; never shown"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", f.Key, value, doc)
	}
	return b.String()
}

// spoken drops the zeros of a duration.
func spoken(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

const configIntro = `<!-- Written by "cloudshare docs config"; a test compares. -->
# Configuration of a broker

A broker reads its keys from the YAML file that ` + "`--config FILE`" + ` names, from the environment and from flags. Flags win
over the environment, that over the file, that over the defaults. A key such as ` + "`archive.max_bytes`" + ` is

- in the file a key inside another one: ` + "`archive: {max_bytes: 1Gi}`" + `,
- in the environment ` + "`CLOUDSHARE_ARCHIVE_MAX_BYTES`" + `,
- a flag ` + "`--archive-max-bytes`" + `.

` + "`cloudshare broker --check-config`" + ` reads all three as a start would, prints what counts and where it is from, and starts
nothing. A wrong or unknown key is exit 2 with its name, what it must be, and the nearest key there is.

Durations are written ` + "`90s`, `15m`, `36h`" + `; quantities ` + "`256Mi`, `4Gi`" + `. ` + "`data_dir`" + ` must be on a disk that keeps what was synced.

Of an attempt that has ended its output stays, as ` + "`task_logs`" + ` says: so long, and all together so large; the oldest goes first. Its working directory does not, whether it succeeded or failed, and no key
changes that: it can be of any size, and its user seldom has an account here. A task can hand it out as output (` + "`cloudshare guide user`" + `).

SIGUSR1 has a running broker log at level debug, and again at its own.

`

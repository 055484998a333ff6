package keys

import (
	"crypto/sha256"
	"strconv"
	"strings"
)

// keyHash stands for a key without its line.
type keyHash [16]byte

// Body tells bodies under one key apart: against mistakes, 64 bits do.
type Body [8]byte

// Name is an idempotency key; line is 0 if it does not end in "/n".
type Name struct {
	hash keyHash
	line uint32
}

// OfUser returns the text under which a user's key is held: another's same key is another one, else it would tell of
// others' jobs. Neither holds a zero byte; user "" is who names none.
func OfUser(user, key string) string {
	if user == "" {
		return key
	}
	return user + "\x00" + key
}

// NameOf parts a key from its line. Each text has one name, no two have the same.
func NameOf(key string, line uint32) Name {
	if cut := strings.LastIndexByte(key, '/'); line == 0 && cut >= 0 {
		n, err := strconv.ParseUint(key[cut+1:], 10, 32)
		if err == nil && n > 0 && strconv.FormatUint(n, 10) == key[cut+1:] {
			key, line = key[:cut], uint32(n)
		}
	}
	sum := sha256.Sum256([]byte(key))
	return Name{keyHash(sum[:16]), line}
}

// runSlot is where the runs of slotLines lines of a key are.
type runSlot struct {
	hash keyHash
	part uint32
}

func (n Name) slot() runSlot { return runSlot{n.hash, n.line / slotLines} }

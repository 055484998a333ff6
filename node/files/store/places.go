package store

import "github.com/cloudshare/cloudshare/node/files"

// OwnOf returns where the blobs of a user of this site are, "" for those of the site itself.
func OwnOf(user string) Place { return Place{Own, ownerName("user-", user)} }

// CacheOf returns where the inputs of another site's jobs are.
func CacheOf(site string) Place { return Place{Cache, site} }

// OutgoingOf returns where the outputs of another site's jobs are.
func OutgoingOf(site string) Place { return Place{Outgoing, site} }

// ownerName returns a name within bounds that no two texts share.
func ownerName(prefix, text string) string {
	if len(prefix)+len(text) <= MaxOwner {
		return prefix + text
	}
	return "hash-" + files.HashOf([]byte(text)).String()
}

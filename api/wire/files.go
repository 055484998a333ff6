package wire

// Blob names a file's bytes.
type Blob struct {
	SHA256 string `json:"sha256" doc:"64 digits of 0-9a-f, as sha256sum prints them"`
	Size   int64  `json:"size" doc:"bytes"`
}

// BlobHashes asks for blobs.
type BlobHashes struct {
	SHA256 []string `json:"sha256" minItems:"1" maxItems:"1000"`
}

// MissingBlobs are those that are not there.
type MissingBlobs struct {
	Missing []string `json:"missing" doc:"their SHA-256"`
}

// ImportRequest asks for what stands behind a URL.
type ImportRequest struct {
	URL    string `json:"url" maxLength:"2048" doc:"https, of a host that the site's operator allows by data.fetch_from, or s3://BUCKET/KEY of a bucket that is allowed there; the key stands as it is, without escapes"`
	SHA256 string `json:"sha256" required:"false" doc:"what its bytes must have; left out: whatever comes"`
}

// Importing says how far an import is.
type Importing struct {
	Received int64 `json:"received" doc:"bytes"`
	Size     int64 `json:"size" doc:"bytes in all; -1: not known, or it has not begun"`
}

// ResultFile is a file that a task has left.
type ResultFile struct {
	Task       uint32 `json:"task" doc:"its index"`
	Attempt    uint32 `json:"attempt" doc:"the one that counts"`
	Path       string `json:"path" doc:"below the task's work folder"`
	Size       int64  `json:"size" doc:"bytes"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable"`
}

// SpaceUse is what a part of a site's store of files has.
type SpaceUse struct {
	Space    string `json:"space" doc:"own: of this site's users; cache: inputs of others' jobs; outgoing: what others' jobs have left"`
	Bytes    int64  `json:"bytes" doc:"as they count: in blocks of 4 KiB, partial files whole"`
	MaxBytes int64  `json:"max_bytes"`
	Promised int64  `json:"promised" doc:"bytes kept for what is to come of tasks that run here; own may be promised more than it has left: results wait for room then"`
	Blobs    int    `json:"blobs"`
}

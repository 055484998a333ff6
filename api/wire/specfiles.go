package wire

// SpecInput is a file, or a directory of files, that each task finds when it begins. It has one of sha256, manifest,
// each, url and content; sha256 may stand beside url.
type SpecInput struct {
	Path       string  `json:"path" maxLength:"1024" example:"data/ref.fa" doc:"where: below the task's work folder; with an image also absolute"`
	SHA256     string  `json:"sha256,omitempty" required:"false" doc:"a file that was uploaded, or what a URL's has"`
	Manifest   string  `json:"manifest,omitempty" required:"false" doc:"a directory: the SHA-256 of its manifest"`
	Each       string  `json:"each,omitempty" required:"false" doc:"a manifest, of whose files each task gets the one at the place of its index, from 0, as path; needs count or indices"`
	URL        string  `json:"url,omitempty" required:"false" maxLength:"2048" example:"https://data.example.org/ref.fa" doc:"https, or s3://BUCKET/KEY with the key as it is; fetched by the broker of the job's site from what its operator allows"`
	Content    *string `json:"content,omitempty" required:"false" doc:"the file's text"`
	Size       *int64  `json:"size,omitempty" required:"false" minimum:"0" doc:"bytes of what the hash names"`
	Executable bool    `json:"executable,omitempty" required:"false" default:"false" doc:"of one file; a manifest says it of each of its own"`
}

// SpecOutputs are the files that each task is to leave, for its user to have.
type SpecOutputs struct {
	Paths    []string `json:"paths,omitempty" required:"false" example:"[\"out/*.csv\",\"model/\"]" doc:"globs below the work folder, each of which must match; with a slash at the end all that is in a folder"`
	Optional []string `json:"optional,omitempty" required:"false" doc:"globs of what may be missing"`
	Max      string   `json:"max,omitempty" required:"false" default:"1Gi" doc:"of all files of a task together, and as much is reserved for them"`
	When     string   `json:"when,omitempty" required:"false" enum:"always,success" default:"always" doc:"after which ends of a task they are kept"`
}

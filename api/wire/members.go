package wire

import "time"

// Member is a site that was admitted to the federation, with the key by which others know it.
type Member struct {
	Site       string     `json:"site"`
	Key        string     `json:"key" doc:"public key: whoever has its secret half is the site"`
	Node       string     `json:"node" doc:"the key's hash, in hex"`
	Recovery   string     `json:"recovery,omitempty" doc:"public half of the key that replaces the key when that is lost; left out: none was set"`
	Generation uint64     `json:"generation" doc:"how often key or recovery were replaced"`
	Elector    bool       `json:"elector" doc:"it has a vote"`
	Deciding   bool       `json:"deciding" doc:"and the vote counts now: the site was here since the last recovery of the federation"`
	Banned     bool       `json:"banned" doc:"the electors have expelled it"`
	Since      *time.Time `json:"since" doc:"its admission"`
}

// Invitation lets one site in, once.
type Invitation struct {
	Site     string     `json:"site" doc:"who is invited"`
	By       string     `json:"by"`
	Vote     bool       `json:"vote" doc:"it is to be an elector, if there are fewer than five by then"`
	State    string     `json:"state" enum:"open,claimed,admitted,revoked,refused,expired" doc:"claimed: somebody has used it, and the electors have not agreed yet"`
	Until    *time.Time `json:"until"`
	Key      string     `json:"key" doc:"public half of the key in its text"`
	Claimant string     `json:"claimant,omitempty" doc:"the key that has used it: compare it with that of the site's operator (cloudshare key show)"`
	Motion   uint64     `json:"motion" doc:"what the electors decide on"`
	Waiting  []string   `json:"waiting" doc:"electors that have not voted; empty once it is decided"`
	Needs    int        `json:"needs" doc:"votes for it that are missing; 0 once it is decided"`
}

// InviteRequest asks for an invitation.
type InviteRequest struct {
	Site string `json:"site" doc:"the name that the new site gets"`
	Vote *bool  `json:"vote,omitempty" required:"false" default:"true" doc:"it is to be an elector, if there are fewer than five by then"`
	For  string `json:"for,omitempty" required:"false" default:"24h" doc:"how long the invitation stands, at most 30d"`
	// Again asks for a text for a member.
	Again bool `json:"again,omitempty" required:"false" default:"false" doc:"for a member that comes back on an empty disk with the key that the federation has for it: nothing is decided, and nobody else is let in"`
}

// Invited is a new invitation with its text, which nobody keeps: it is told once.
type Invited struct {
	Token     string   `json:"token" doc:"what the new site's broker is started with; a secret until it is used"`
	Addresses []string `json:"addresses" doc:"peer addresses that it names: the new site must reach one"`
	Invitation
}

// Motion is what the electors decide on: it passes once more than half agree.
type Motion struct {
	Number   uint64     `json:"number"`
	What     string     `json:"what" enum:"admit,elector,no-elector,ban,unban,rebind,policy,forget"`
	Site     string     `json:"site,omitempty" doc:"whom it is about; left out: of a policy"`
	Key      string     `json:"key,omitempty" doc:"of rebind: the name's next key; of admit: the key that has used the invitation, left out while nobody has"`
	Params   *Policy    `json:"params,omitempty" doc:"of policy: what it would be"`
	By       string     `json:"by"`
	State    string     `json:"state" enum:"open,passed,rejected,withdrawn,void,expired" doc:"void: it passed, and could not be done any more"`
	OpenedAt *time.Time `json:"opened_at"`
	Until    *time.Time `json:"until" doc:"nobody votes afterwards"`
	EndedAt  *time.Time `json:"ended_at"`
	Votes    []Vote     `json:"votes"`
	Yes      int        `json:"yes" doc:"votes of those that are electors now"`
	No       int        `json:"no"`
	Electors int        `json:"electors"`
	Needs    int        `json:"needs" doc:"votes for it that are missing; 0 once it is decided"`
	Missing  []string   `json:"missing" doc:"electors that have not voted; empty once it is decided"`
}

// Vote is one elector's.
type Vote struct {
	Site string `json:"site"`
	Yes  bool   `json:"yes"`
}

// MotionRequest proposes something to the electors. Who proposes what is open already votes for it.
type MotionRequest struct {
	What   string         `json:"what" enum:"ban,unban,elector,no-elector,rebind,policy,forget"`
	Site   string         `json:"site,omitempty" required:"false" doc:"of all but policy"`
	Key    string         `json:"key,omitempty" required:"false" doc:"of rebind: the name's next key"`
	Params map[string]any `json:"params,omitempty" required:"false" doc:"of policy: the fields that change, as in PUT /v1/policy"`
}

// VoteRequest votes on a motion.
type VoteRequest struct {
	Yes *bool `json:"yes"`
}

// KeyRequest replaces a site's key. It proves itself, so any member's broker passes it on.
type KeyRequest struct {
	Rekey []byte `json:"rekey" doc:"the signed command, in base64, as cloudshare key makes it"`
}

// PolicySet answers a change of the policy.
type PolicySet struct {
	Policy
	Motion *Motion `json:"motion,omitempty" doc:"the change, which waits for the electors; left out: it is in force"`
}

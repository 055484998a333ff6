// Package seal keeps what a job runs from everybody but its owner and the sites that run it.
//
// It stands between step 1 and step 3 of a job's way: what all members read of a job, the payload of
// command.JobSpec, is a public part and a sealed one.
//
//	payload = public text · version · id · mark · sealed text · tag
//
//	id     = HMAC(secret, whose · public text · text), the first 16 bytes
//	key    = HMAC(secret, id)
//	mark   = SHA-256(key): which key opens it
//	sealed = AES-256-GCM(key, text), bound to whose payload it is and to the public text
//
// "whose" is the federation and the owner's site. The secret is the owner's alone ([Secret]); from the id
// it makes the key again, and gives it to who runs the job. The same text gives the same bytes, so that equal payloads
// still share one copy everywhere; see DESIGN.md for what others learn by that.
//
// Everything here is pure. The package imports the standard library only.
package seal

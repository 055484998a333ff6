package transfer

import "sync"

// queue is what of a pull is still to be asked for. A part is named by its number.
type queue struct {
	part  func(i int) Request
	bytes int64 // of a request's parts at most, unless it is one

	mu   sync.Mutex
	left []int
}

// batch is the parts of one request.
type batch struct {
	numbers []int
	parts   []Request
}

// take returns the parts of the next request, none if all were asked for.
func (q *queue) take() (b batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var bytes int64
	for len(q.left) > 0 && len(b.parts) < maxParts {
		p := q.part(q.left[0])
		if bytes += p.Length; len(b.parts) > 0 && bytes > q.bytes {
			break
		}
		b.numbers, b.parts = append(b.numbers, q.left[0]), append(b.parts, p)
		q.left = q.left[1:]
	}
	return b
}

// links returns how many links are of use for what is left.
func (q *queue) links() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.left) == 0 {
		return 0
	}
	each := max(1, min(maxParts, q.bytes/q.part(q.left[0]).Length)) // more or less
	return min(parallel, 1+(len(q.left)-1)/int(each))
}

// putBack takes up parts again that were not answered.
func (q *queue) putBack(numbers []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left = append(q.left, numbers...)
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.left) == 0
}

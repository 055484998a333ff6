package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The form of a bbolt file, version 2, in the machine's byte order.
const (
	magic   = 0xED0CDAED
	version = 2

	headSize    = 16 // of a page: id 8, flags 2, count 2, overflow 4
	elementSize = 16 // leaf: flags 4, pos 4, key 4, value 4; branch: pos 4, key 4, page 8
	bucketSize  = 16 // root 8, sequence 8; an inline page follows if root is 0
	metaSize    = 64 // checksum included, which is of what comes before

	branchPage = 0x01
	leafPage   = 0x02
	bucketLeaf = 0x01 // flag of an element whose value is a bucket

	minPageShift, maxPageShift = 10, 24 // where bbolt looks for the second head
	maxDepth                   = 64     // of pages; a tree of 2^64 bytes has fewer
)

var order = binary.NativeEndian

// meta is one of the two heads.
type meta struct {
	pageSize         int64
	root, high, txid uint64 // high: pages from here on are not in use
}

// tree is the check of one file.
type tree struct {
	r    io.ReaderAt
	size int64 // of the file, bytes
	meta
	seen map[uint64]bool // pages of the tree
}

func checkTree(r io.ReaderAt, size int64) error {
	m, err := readMeta(r, size)
	if err != nil {
		return err
	}
	t := &tree{r: r, size: size, meta: m, seen: map[uint64]bool{}}
	return t.page(m.root, nil, nil, 0)
}

// readMeta returns the newest head that is whole, as bbolt takes it.
func readMeta(r io.ReaderAt, size int64) (meta, error) {
	newest, ok := metaAt(r, 0)
	if ok {
		if m, whole := metaAt(r, newest.pageSize); whole && m.txid > newest.txid {
			newest = m
		}
		return newest, nil
	}
	for shift := minPageShift; shift <= maxPageShift && int64(1)<<shift < size; shift++ {
		if m, whole := metaAt(r, 1<<shift); whole && m.pageSize == 1<<shift {
			return m, nil
		}
	}
	return meta{}, errors.New("neither of its two heads is whole")
}

func metaAt(r io.ReaderAt, at int64) (m meta, ok bool) {
	var b [headSize + metaSize]byte
	if _, err := r.ReadAt(b[:], at); err != nil {
		return m, false
	}
	d := b[headSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(d[:metaSize-8]) // never fails
	m = meta{
		pageSize: int64(order.Uint32(d[8:])), root: order.Uint64(d[16:]), high: order.Uint64(d[40:]),
		txid: order.Uint64(d[48:]),
	}
	return m, order.Uint32(d) == magic && order.Uint32(d[4:]) == version &&
		order.Uint64(d[metaSize-8:]) == sum.Sum64() &&
		m.pageSize >= 1<<minPageShift && m.pageSize <= 1<<maxPageShift
}

// page checks a page and what is below it: its keys ascend, from low on and
// below high; nil is no limit.
func (t *tree) page(id uint64, low, high []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d: more than %d levels deep", id, maxDepth)
	}
	b, err := t.read(id)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	flags, count := order.Uint16(b[8:]), int(order.Uint16(b[10:]))
	switch flags {
	case leafPage:
		err = t.leaf(b, count, low, high, depth)
	case branchPage:
		err = t.branch(b, count, low, high, depth)
	default:
		err = fmt.Errorf("type %#x is that of no page with data", flags)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// read returns a page with its overflow, and marks it as seen.
func (t *tree) read(id uint64) ([]byte, error) {
	if id < 2 || id >= t.high {
		return nil, fmt.Errorf("not one of the pages 2 to %d", t.high-1)
	}
	var head [headSize]byte
	at := int64(id) * t.pageSize
	if _, err := t.r.ReadAt(head[:], at); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if is := order.Uint64(head[:]); is != id {
		return nil, fmt.Errorf("says that it is page %d", is)
	}
	pages := int64(order.Uint32(head[12:])) + 1
	if uint64(pages) > t.high-id || at+pages*t.pageSize > t.size {
		return nil, fmt.Errorf("its %d pages go beyond the end of the file", pages)
	}
	for p := id; p < id+uint64(pages); p++ {
		if t.seen[p] {
			return nil, fmt.Errorf("page %d is in the tree twice", p)
		}
		t.seen[p] = true
	}
	b := make([]byte, pages*t.pageSize)
	if _, err := t.r.ReadAt(b, at); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return b, nil
}

func (t *tree) branch(b []byte, count int, low, high []byte, depth int) error {
	if count == 0 {
		return errors.New("a branch without children")
	}
	keys := make([][]byte, count, count+1)
	for i := range keys {
		e, err := element(b, i, count)
		if err != nil {
			return err
		}
		if keys[i], err = part(e, order.Uint32(e), order.Uint32(e[4:])); err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
	}
	if err := checkAscending(keys, low, high); err != nil {
		return err
	}
	keys = append(keys, high)
	for i := range count {
		child := order.Uint64(b[headSize+i*elementSize+8:])
		if err := t.page(child, keys[i], keys[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) leaf(b []byte, count int, low, high []byte, depth int) error {
	keys := make([][]byte, count)
	for i := range keys {
		e, err := element(b, i, count)
		if err != nil {
			return err
		}
		pos, key, size := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		if keys[i], err = part(e, pos, key); err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
		value, err := part(e[key:], pos, size)
		if err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
		if order.Uint32(e)&bucketLeaf == 0 {
			continue
		}
		if err = t.bucket(value, depth); err != nil {
			return fmt.Errorf("bucket %q: %w", keys[i], err)
		}
	}
	return checkAscending(keys, low, high)
}

// bucket checks the value of a leaf's element that is one.
func (t *tree) bucket(b []byte, depth int) error {
	if len(b) < bucketSize {
		return fmt.Errorf("takes %d bytes", len(b))
	}
	if root := order.Uint64(b); root != 0 {
		return t.page(root, nil, nil, depth+1)
	}
	b = b[bucketSize:]
	if len(b) < headSize || order.Uint16(b[8:]) != leafPage || depth > maxDepth {
		return errors.New("its page within the value is none")
	}
	return t.leaf(b, int(order.Uint16(b[10:])), nil, nil, depth+1)
}

// element returns a page's bytes from its i-th element on.
func element(b []byte, i, count int) ([]byte, error) {
	if headSize+count*elementSize > len(b) {
		return nil, fmt.Errorf("%d elements do not fit into %d bytes", count, len(b))
	}
	return b[headSize+i*elementSize:], nil
}

// part returns size bytes at pos of an element.
func part(e []byte, pos, size uint32) ([]byte, error) {
	if uint64(pos)+uint64(size) > uint64(len(e)) {
		return nil, fmt.Errorf("%d bytes at %d are not in the page", size, pos)
	}
	return e[pos : pos+size], nil
}

func checkAscending(keys [][]byte, low, high []byte) error {
	for i, k := range keys {
		if i == 0 && low != nil && bytes.Compare(k, low) < 0 || i > 0 && bytes.Compare(keys[i-1], k) >= 0 ||
			high != nil && bytes.Compare(k, high) >= 0 {
			return fmt.Errorf("key %d (%x) is out of order", i, k)
		}
	}
	return nil
}

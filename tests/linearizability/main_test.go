package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func verdict(t *testing.T, name string) (int, []string) {
	t.Helper()
	// A copy, since pictures lie beside the history.
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code := run(path)
	pictures, err := filepath.Glob(path + ".*.html")
	if err != nil {
		t.Fatal(err)
	}
	return code, pictures
}

func TestHistories(t *testing.T) {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) < 6 {
		t.Fatalf("histories: %v, %v", names, err)
	}
	for _, name := range names {
		name := filepath.Base(name)
		t.Run(name, func(t *testing.T) {
			code, pictures := verdict(t, name)
			bad := strings.HasPrefix(name, "bad-")
			if bad != (code == 1) || code == 2 || bad != (len(pictures) == 1) {
				t.Errorf("verdict %d, pictures %v", code, pictures)
			}
		})
	}
}

func TestAHistoryThatDoesNotReadIsRefused(t *testing.T) {
	for _, text := range []string{
		"{",
		`{"client":0,"op":"swap","key":"a","call":1,"return":2,"outcome":"ok"}`,
		`{"client":0,"op":"put","key":"a","call":1,"return":2,"outcome":"ok"}`,
		`{"client":0,"op":"get","key":"a","call":3,"return":2,"outcome":"ok"}`,
		`{"client":0,"op":"get","key":"a","call":1,"return":2,"outcome":"maybe"}`,
		`{"client":0,"op":"delete","key":"a","call":1,"return":2,"outcome":"ok"}`,
		`{"client":0,"op":"put","key":"a","value":1,"call":1,"return":2,"outcome":"ok"}` + "\n" +
			`{"client":0,"op":"put","key":"a","value":1,"call":3,"return":4,"outcome":"ok"}`,
	} {
		if _, err := readHistory(strings.NewReader(text)); err == nil {
			t.Errorf("taken: %s", text)
		}
	}
}

// Command linearizability checks a history of registers: whether all operations on each have an order that agrees with their
// times and with what they have shown. The search is Porcupine's.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is the max time for one key. A history that takes longer is neither good nor bad.
const patience = 5 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: linearizability HISTORY.jsonl")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1]))
}

// run returns 0 for a history that is linearizable, 1 for one that is not, and 2 where that is not known.
func run(path string) int {
	file, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer file.Close()
	all, err := readHistory(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
		return 2
	}
	code, checked := 0, 0
	keys := byKey(all)
	for _, key := range sortedKeys(keys) {
		verdict, info := porcupine.CheckOperationsVerbose(register, keys[key], patience)
		checked += len(keys[key])
		switch verdict {
		case porcupine.Ok:
		case porcupine.Illegal:
			code = 1
			fmt.Printf("NOT LINEARIZABLE: key %s, %d operations\n", key, len(keys[key]))
			picture := path + "." + key + ".html"
			if err := porcupine.VisualizePath(register, info, picture); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", picture, err)
			} else {
				fmt.Printf("picture: %s\n", picture)
			}
		default:
			fmt.Printf("NOT KNOWN: key %s, %d operations: no order was found within %v\n", key, len(keys[key]), patience)
			code = max(code, 2)
		}
	}
	if code == 0 {
		fmt.Printf("linearizable: %d operations on %d keys, of %d in the history\n", checked, len(keys), len(all))
	}
	return code
}

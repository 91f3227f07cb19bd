# Sourced by tests: starts `meridian lab mock` with sources of all tempers, and writes $folder/config.toml, by which a server
# asks them. Sets mock (its process).
cat > "$folder/sources.toml" << 'END'
seed = 7
[[source]]
name = "quick"
delay = { kind = "fixed", ms = 20 }
items = 6
[[source]]
name = "paged"
delay = { kind = "fixed", ms = 40 }
pages = 3
items = 10
[[source]]
name = "late"
delay = { kind = "fixed", ms = 1500 }
items = 5
[[source]]
name = "hang"
[[source.fault]]
kind = "hang"
[[source]]
name = "garbage"
[[source.fault]]
kind = "garbage"
[[source]]
name = "keyless"
END
"$meridian" lab mock "$folder/sources.toml" --listen 127.0.0.1:0 > "$folder/mock" 2>&1 &
mock=$!
for _ in $(seq 100); do
    mock_url=$(grep -oE 'http://127.0.0.1:[0-9]+' "$folder/mock" | head -n 1) && break
    sleep 0.1
done
[[ -n ${mock_url:-} ]] || { echo "the mock sources did not start:"; cat "$folder/mock"; exit 1; }

mkdir -p "$folder/providers"
# source NAME TITLE [LINE]: a declaration of one of them.
source_of() {
    cat > "$folder/providers/$1.toml" << END
name = "$1"
title = "$2"
${3:-}
[takes]
keywords = "all"
needs = ["keywords"]
[request]
url = "$mock_url/$1"
[request.query]
q = "{words}"
[paging]
kind = "link"
path = "next"
pages_max = 3
[answer]
format = "json"
items = "items"
sure_of = ["keywords"]
[answer.map]
id = "id"
text = "text"
lon = "lon"
lat = "lat"
[limits]
allow_private = true
# A breaker that opens would tell "refused" where a test waits for "error".
failures = 1000
END
}
source_of quick "Quick news"
source_of paged "Page by page"
source_of late "Takes its time"
source_of hang "Says nothing"
source_of garbage "Sends garbage"
source_of keyless "Wants a key" 'credentials = ["MERIDIAN_NO_SUCH_KEY"]'

# A browser that draws with the processor may be slow: to look, and to come back.
cat > "$folder/config.toml" << END
[search]
providers = "$folder/providers"
deadline = "100s"
gone = "30s"
wait = "60s"
END

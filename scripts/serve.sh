# Sourced by tests: serves $folder/data with $meridian on a free port, by $folder/config.toml if there is one; sets server (its
# process) and url.
config=()
[[ ! -f $folder/config.toml ]] || config=(--config "$folder/config.toml")
"$meridian" serve --listen 127.0.0.1:0 --data "$folder/data" "${config[@]}" > "$folder/out" 2> "$folder/log" &
server=$!
for _ in $(seq 100); do
    url=$(grep -oE 'http://127.0.0.1:[0-9]+' "$folder/out" | head -n 1) && break
    sleep 0.1
done
[[ -n ${url:-} ]] || { echo "the server did not start:"; cat "$folder/log"; exit 1; }

# Completion of wolo for bash. `wolo completion bash --install` puts it in its place.
_wolo() {
    local line kind=""
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("$line"); fi
    done < <(command wolo completion --line bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
        files) compopt -o default 2>/dev/null ;;
        dirs) compopt -o dirnames 2>/dev/null ;;
        nospace) compopt -o nospace 2>/dev/null ;;
    esac
}
complete -F _wolo wolo

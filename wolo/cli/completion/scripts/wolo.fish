# Completion of wolo for fish. `wolo completion fish --install` puts it in its place.
function __wolo_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct)
    set -l lines (command wolo completion --line fish $words "$current" 2>/dev/null)
    set -l before (string match -r -- '^-[^=]*=' "$current"; or echo)
    set -l begun (string replace -r -- '^-[^=]*=' '' "$current")
    switch "$lines[1]"
        case files
            printf '%s\n' $before(__fish_complete_path "$begun")
        case dirs
            printf '%s\n' $before(__fish_complete_directories "$begun" '')
        case '*'
            set -e lines[1]
            printf '%s\n' $lines
    end
end
complete -c wolo -f -a '(__wolo_complete)'

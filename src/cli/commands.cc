#include <array>

#include "cli/command.h"

namespace flamewire::cli {

std::span<const Command> commands() {
    static constexpr std::array all{
        Command{"record", "record a command or processes of this machine, and show what took the time", &add_record},
        Command{"report", "show the functions and the call tree of a profile", &add_report},
        Command{"top", "show live what takes the time", &add_top},
        Command{"trace", "print each hit of events with its values, or a table of them", &add_trace},
        Command{"sql", "run SQL over a profile", &add_sql},
        Command{"stat", "count events of a command or processes", &add_stat},
        Command{"diff", "compare two profiles, function by function", &add_diff},
        Command{"export", "write a profile in another format", &add_export},
        Command{"import", "make a session of a profile of another tool", &add_import},
        Command{"list", "list the sessions", &add_list},
        Command{"probe", "list the functions and static probes of a program, for --events", &add_probe},
        Command{"serve", "show profiles in the browser; without files, run the server", &add_serve},
        Command{"completion", "print the completion of a shell", &add_completion},
        Command{"manual", "print the manual page of this program", &add_manual},
    };
    return all;
}

}  // namespace flamewire::cli

#include "cli/view_options.h"

#include <utility>

#include "profile/query.h"

namespace flamewire::cli {

void add_view_options(CLI::App& command, server::ViewParameters& view) {
    command.add_option("-e,--event", view.event, "the event to show (default: all that have samples)")
        ->type_name("NAME");
    command
        .add_option_function<double>(
            "--start", [&view](double seconds) { view.start_ms = seconds * 1000; },
            "from this second of the session on")
        ->type_name("SECONDS");
    command
        .add_option_function<double>(
            "--end", [&view](double seconds) { view.end_ms = seconds * 1000; }, "until this second")
        ->type_name("SECONDS");
    command.add_option("-p,--pid", view.pids, "these processes only (repeatable, or with commas)")
        ->type_name("PID")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("-t,--tid", view.tids, "these threads only")
        ->type_name("TID")
        ->delimiter(',')
        ->allow_extra_args(false);
}

Result<std::vector<server::View>> views_of(const server::Session& session, const server::ViewParameters& parameters) {
    const std::uint64_t start_ns = session.start_ns();
    return session.read([&](const profile::Store& store) -> Result<std::vector<server::View>> {
        std::vector<server::View> views;
        if (!parameters.event.empty()) {
            views.push_back(TRY(resolve_view(parameters, store, start_ns)));
            return views;
        }
        for (profile::EventId event = 1; event < store.events().size(); ++event) {
            if (store.total(event).samples == 0) continue;
            server::ViewParameters one = parameters;
            one.event = store.events()[event].name;
            views.push_back(TRY(resolve_view(one, store, start_ns)));
        }
        return views;
    });
}

}  // namespace flamewire::cli

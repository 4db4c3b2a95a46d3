#include "profile/formats/export.h"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/fd.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/open_profile.h"
#include "cli/terminal.h"
#include "cli/view_options.h"
#include "server/saved_answers.h"
#include "server/session/archive.h"
#include "server/source/bundle_sources.h"

namespace flamewire::cli {
namespace {

struct ExportOptions {
    std::string file, format = "collapsed", output, group;
    bool weights = false, sources = false;
    OpenOptions open;
    views::Parameters view;
};

constexpr std::string_view html = "html", archive = "flamewire";

Result<std::string> exported(const server::Session& session, const ExportOptions& options) {
    if (options.format == html) return server::saved_page(session, options.view);
    const profile::ExportFormat& format = *profile::find_export_format(options.format);
    const std::uint64_t start_ns = session.status().start_ns();
    const server::SessionInfo info = session.info();
    profile::ExportAbout about;
    about.name = title_of(info);
    about.tags.assign(info.label.tags.begin(), info.label.tags.end());
    about.started_ns = info.started_ns;
    about.weights = options.weights;
    about.group = profile::parse_group(options.group).value_or(profile::GroupBy::none);
    return session.read([&](const profile::Store& store) -> Result<std::string> {
        views::View view = TRY(resolve_view(options.view, store, start_ns));
        TRY(check_places(options.view, store));
        // Write all events if the format supports several. Folded stacks name the event in each line.
        const bool first_only = format.one_event && format.name != "collapsed";
        if (options.view.event.empty() && !first_only) view.filter.event.reset();
        return format.write(store, view.filter, about);
    });
}

// Calls `write(fd)` for the file, or for standard output. Removes the file if writing fails.
template <class Write>
Result<int> into_output(const std::string& path, Write write) {
    if (path.empty() || path == "-") {
        const Result<bool> written = write(STDOUT_FILENO);
        if (!written && written.error().errno_value != EPIPE) return std::unexpected(written.error());
        return 0;
    }
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) return fail_errno("cannot write " + path, errno);
    if (const Result<bool> written = write(fd.get()); !written) {
        (void)::unlink(path.c_str());
        return fail_errno("cannot write " + path, written.error().errno_value);
    }
    return 0;
}

Result<int> write_output(std::string_view text, const std::string& path) {
    return into_output(path, [&](int fd) -> Result<bool> {
        TRY(write_all(fd, as_bytes_view(text)));
        return true;
    });
}

Result<int> write_output(int from, std::uint64_t size, const std::string& path) {
    return into_output(path, [&](int fd) -> Result<bool> {
        constexpr std::size_t block = 1 << 20;
        for (std::uint64_t at = 0; at < size;) {
            const std::string bytes = TRY(read_range(from, at, block));
            if (bytes.empty()) break;
            TRY(write_all(fd, as_bytes_view(bytes)));
            at += bytes.size();
        }
        return true;
    });
}

// Writes an archive with the session's names, and with its sources on request, as far as they are on this machine.
Result<int> write_archive(const ExportOptions& options) {
    const OpenProfile open = TRY(open_profile(options.file, options.open, OpenWhere::in_scratch));
    server::Session& session = *open.session;
    if (options.sources) {
        server::SourceLookup sources(source_config(options.open.symbols));
        TRY(bundle_sources(session, sources));
    }
    session.symbols().write_cache();
    const server::ArchiveFile made =
        TRY(server::write_archive(session.id(), session.stream_path(), open.scratch->path()));
    return write_output(made.fd.get(), made.size, options.output);
}

Result<bool> check_group(const ExportOptions& options) {
    const profile::ExportFormat* format = profile::find_export_format(options.format);
    if (options.group.empty() || options.group == "none" || (format != nullptr && format->grouped)) return true;
    return fail(ErrorCode::invalid,
                fmt::format("--group is for folded stacks and pictures (collapsed, svg); for {} take "
                            "one process, thread or container by --pid, --tid or --container",
                            options.format));
}

Result<int> export_profile(const ExportOptions& options) {
    TRY(check_group(options));
    const bool binary = options.format == "pprof" || options.format == "perfdata" || options.format == archive;
    if (binary && options.output.empty() && output_is_terminal())
        return fail(ErrorCode::invalid, options.format + " is not text: give a file with -o");
    if (options.format == archive) return write_archive(options);
    const OpenProfile open = TRY(open_profile(options.file, options.open));
    return write_output(TRY(exported(*open.session, options)), options.output);
}

}  // namespace

Action add_export(CLI::App& command) {
    auto options = std::make_shared<ExportOptions>();
    command.add_option("FILE", options->file, "session or profile (default: the newest session)");
    std::vector<std::string> names{std::string(html), std::string(archive)};
    std::string help = "format to write: ";
    for (const profile::ExportFormat& format : profile::export_formats()) {
        names.emplace_back(format.name);
        help += fmt::format("{} ({}), ", format.name, format.title);
    }
    help += "html (the page in one file), flamewire (the session with its names, as an archive)";
    command.add_option("--format", options->format, help)
        ->type_name("NAME")
        ->capture_default_str()
        ->check(CLI::IsMember(names));
    command.add_option("-o,--output", options->output, "file to write (default: standard output)")->type_name("OUT");
    command.add_flag("--weights", options->weights,
                     "numbers of folded stacks are weights in the event's unit, not samples");
    command.add_flag("--sources", options->sources, "put the source files into the archive");
    add_view_options(command, options->view);
    add_group_option(command, options->group);
    add_open_options(command, options->open);
    return [options] { return export_profile(*options); };
}

}  // namespace flamewire::cli

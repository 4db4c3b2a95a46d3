#include "server/session/import_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/rooted_path.h"
#include "profile/formats/import.h"
#include "server/limits.h"
#include "server/session/archive.h"
#include "server/session/heap_use.h"
#include "server/session/unpack.h"
#include "symbol/files/locate.h"
#include "wire/session_scan.h"

namespace flamewire::server {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

// A regular file.
class FileSource final : public profile::ImportSource {
public:
    static Result<FileSource> open(const std::string& path) {
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd) return fail_errno("cannot open " + path, errno);
        struct stat status{};
        if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot read " + path, errno);
        if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, path + " is not a regular file");
        return FileSource(path, std::move(fd), static_cast<std::uint64_t>(status.st_size));
    }
    FileSource(std::string path, UniqueFd fd, std::uint64_t size)
        : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        std::size_t done = 0;
        while (done < into.size()) {
            const ssize_t got =
                ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return fail_errno("cannot read " + path_, errno);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

private:
    std::string path_;
    UniqueFd fd_;
    std::uint64_t size_;
};

wire::RecordingId random_recording() {
    wire::RecordingId id{};
    // getrandom() never returns less for so few bytes.
    (void)!::getrandom(id.data(), id.size(), 0);
    return id;
}

Result<bool> check_cancelled(const ImportTarget& target) {
    if (target.cancelled && target.cancelled()) return fail(ErrorCode::closed, "the import was cancelled");
    return true;
}

// Stops an import that needs too much memory or is canceled.
class ImportLimits {
public:
    explicit ImportLimits(const ImportTarget& target) : target_(target) {}
    // `more`: bytes about to be allocated.
    [[nodiscard]] Result<bool> check(std::uint64_t more = 0) const {
        TRY(check_cancelled(target_));
        const auto peak = static_cast<std::uint64_t>(std::max<std::int64_t>(heap_.peak_bytes(), 0));
        if (peak <= target_.memory_bytes && more <= target_.memory_bytes - peak) return true;
        limit_reached(Limit::import_memory);
        return fail(ErrorCode::too_large,
                    fmt::format("the import takes more than {:.4g} MiB of memory, the limit of --import-memory: import "
                                "a shorter profile, or give a larger --import-memory SIZE",
                                static_cast<double>(target_.memory_bytes) / (1 << 20)));
    }

private:
    const ImportTarget& target_;
    HeapUse heap_;
};

// A file whose reader stops when `check` fails.
class CheckedSource final : public profile::ImportSource {
public:
    CheckedSource(profile::ImportSource& source, std::function<Result<bool>()> check)
        : source_(source), check_(std::move(check)) {}
    [[nodiscard]] std::uint64_t size() const override { return source_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        TRY(check_());
        return source_.read_at(offset, into);
    }

private:
    profile::ImportSource& source_;
    const std::function<Result<bool>()> check_;
};

// A file of our own format: adopted unchanged.
Result<std::shared_ptr<Session>> import_unchanged(
    const ImportTarget& target, const std::function<Result<std::shared_ptr<Session>>()>& import_stream) {
    TRY(check_cancelled(target));
    std::shared_ptr<Session> session = TRY(import_stream());
    if (auto on = check_cancelled(target); !on) {
        target.discard(*session);
        return std::unexpected(std::move(on).error());
    }
    return session;
}

// Puts an importer's data into a session in the same way as an agent's batches.
class SessionJob final : public profile::ImportJob {
public:
    SessionJob(FileSource& source, std::string name, Session& session, const wire::RecordingId& recording,
               const ImportTarget& target)
        : target_(target),
          limits_(target),
          source_(source, [this] { return limits_.check(); }),
          name_(std::move(name)),
          session_(session),
          recording_(recording) {}
    profile::ImportSource& source() override { return source_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    profile::RecordingBuilder& begin(wire::Recording about, std::int64_t realtime) override {
        if (about.target.empty()) about.target = name_;
        const auto take = [this](wire::Batch batch) -> Result<bool> {
            TRY(limits_.check());
            wire::learn_periods(batch, periods_);
            const wire::Frame frame = wire::batch_frame(wire::encode(batch, periods_));
            TRY(session_.ingest(frame.flag, frame.payload, realtime_ns()));
            return true;
        };
        return builder_.emplace(recording_, std::move(about), realtime != 0 ? realtime : realtime_ns(), take);
    }
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity& module) override {
        return symbol::locate(module, target_.symbols).code_file;
    }
    [[nodiscard]] std::string in_sysroot(std::string_view path) override {
        const std::string& root = target_.symbols.sysroot;
        return root.empty() ? std::string() : path_in_root(root, path);
    }
    [[nodiscard]] Result<bool> make_room(std::uint64_t bytes) override { return limits_.check(bytes); }
    void progress(std::uint64_t read_bytes) override { target_.progress(read_bytes, source_.size()); }
    Result<bool> finish(bool truncated) {
        if (builder_ && truncated)
            builder_->note("import-truncated", "The compressed file ends too early: the part before is shown.");
        if (builder_) TRY(builder_->finish("imported"));
        TRY(session_.sync());
        return true;
    }

private:
    const ImportTarget& target_;
    ImportLimits limits_;
    CheckedSource source_;
    std::string name_;
    Session& session_;
    wire::RecordingId recording_;
    wire::EventPeriods periods_;
    std::optional<profile::RecordingBuilder> builder_;
};

// The start of the file, which determines its format.
Result<std::string> read_beginning(FileSource& source) {
    std::string beginning(block_bytes, '\0');
    beginning.resize(TRY(source.read_at(0, beginning)));
    return beginning;
}

Error unsupported_format(const std::string& name) {
    std::string known;
    for (const profile::ImportFormat& format : profile::import_formats()) known += fmt::format(", {}", format.title);
    return {.code = ErrorCode::invalid,
            .message = fmt::format(
                "{} is not in a format that can be imported: sessions of flamewire-agent --output, .flamewire "
                "archives{} can, all but the first also "
                "compressed by gzip or zstd",
                name, known)};
}

}  // namespace

Result<std::shared_ptr<Session>> import_file(const std::string& path, const std::string& name,
                                             const ImportTarget& target) {
    FileSource source = TRY(FileSource::open(path));
    target.progress(0, source.size());
    // Unpacking and extracting also take long.
    CheckedSource checked(source, [&] { return check_cancelled(target); });
    std::string beginning = TRY(read_beginning(source));
    bool truncated = false, unpacked_from = false;
    if (is_compressed(beginning)) {
        Unpacked unpacked =
            TRY(unpack(checked, target.scratch_dir, [&](std::uint64_t read) { target.progress(read, source.size()); }));
        truncated = unpacked.truncated;
        unpacked_from = true;
        source = FileSource(path, std::move(unpacked.fd), unpacked.size);
        beginning = TRY(read_beginning(source));
        if (beginning.starts_with(wire::session_magic))
            return fail(ErrorCode::invalid,
                        name + " is a compressed session: unpack it (gzip -d, zstd -d) and import that");
    }
    if (beginning.empty())
        return fail(ErrorCode::invalid, name + (truncated ? " is cut off: nothing of it can be read" : " is empty"));
    if (beginning.starts_with(wire::session_magic)) return import_unchanged(target, target.import_stream);
    if (is_tar(beginning)) {
        if (truncated) return fail(ErrorCode::invalid, name + " is cut off: it ends before the session does");
        return import_unchanged(target, [&] { return target.import_archive(checked); });
    }
    const profile::ImportFormat* format = profile::recognise_import(beginning);
    if (format == nullptr) {
        // A session whose header is damaged, if the file was not compressed.
        if (!unpacked_from && wire::SessionScanner::open(path)) return import_unchanged(target, target.import_stream);
        return std::unexpected(unsupported_format(name));
    }

    const wire::RecordingId recording = random_recording();
    std::shared_ptr<Session> session = TRY(target.create(recording));
    session->status().detach_agent();
    Result<bool> done = true;
    {
        SessionJob job(source, name, *session, recording, target);
        done = format->import(job);
        if (done) done = job.finish(truncated);
    }
    if (!done) {
        target.discard(*session);
        return std::unexpected(done.error());
    }
    session->status().publish(true);
    return session;
}

}  // namespace flamewire::server

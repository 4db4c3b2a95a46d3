#include "server/session/source_bundle.h"

#include <algorithm>

#include "base/file.h"
#include "server/session/side_files.h"
#include "wire/frame.h"
#include "wire/proto.h"

// docs/kept.proto: KeptSources.
namespace flamewire::server {
namespace {

struct SourcesMessage {
    std::vector<BundledSource> files;
};

}  // namespace
}  // namespace flamewire::server

namespace flamewire::wire::proto {

template <>
inline constexpr std::tuple fields<server::BundledSource>{Field{1, &server::BundledSource::name},
                                                          Field{2, &server::BundledSource::path},
                                                          Field{3, &server::BundledSource::text}};
template <>
inline constexpr std::tuple fields<server::SourcesMessage>{
    Field{1, &server::SourcesMessage::files, server::max_source_bundle_files}};

}  // namespace flamewire::wire::proto

namespace flamewire::server {

std::string encode_source_bundle(std::span<const BundledSource> files) {
    std::string message;
    wire::proto::pbf_writer out(message);
    for (const BundledSource& source : files) wire::proto::put_message(out, 1, source);
    return wire::compress(message);
}

Result<std::vector<BundledSource>> decode_source_bundle(Bytes packed) {
    const std::string message = TRY(wire::decompress(packed, max_source_bundle_bytes));
    try {
        return wire::proto::read<SourcesMessage>(wire::proto::pbf_reader(message)).files;
    } catch (const wire::proto::Malformed&) {
        return fail(ErrorCode::invalid, "the kept sources are more files than a session keeps");
    } catch (const protozero::exception& error) {
        return fail(ErrorCode::invalid, std::string("the kept sources are damaged: ") + error.what());
    }
}

Result<std::vector<BundledSource>> read_source_bundle(const std::string& stream_path) {
    const auto packed = read_file(side_file(stream_path, sources_name), max_source_bundle_bytes);
    if (!packed && packed.error().code == ErrorCode::not_found) return std::vector<BundledSource>{};
    if (!packed) return std::unexpected(packed.error());
    return decode_source_bundle(as_bytes_view(*packed));
}

std::optional<BundledSource> find_bundled_source(const std::string& stream_path, std::string_view name) {
    auto files = read_source_bundle(stream_path);
    if (!files) return std::nullopt;
    const auto at = std::ranges::find(*files, name, &BundledSource::name);
    return at == files->end() ? std::nullopt : std::optional(std::move(*at));
}

}  // namespace flamewire::server

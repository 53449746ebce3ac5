// Golden numbers of models.md section 11: float64 results that two implementations agree on.
#pragma once

#include <cstdint>
#include <limits>

namespace hydra::test {

/// A parameter, its number of elements, and of its gradient the L2 norm and the first element (not
/// printed for all cases).
struct GoldenGradient {
  const char *name;
  int64_t elements;
  double norm;
  double first = std::numeric_limits<double>::quiet_NaN();
};

/// The loss after a number of updates.
struct GoldenLoss {
  int64_t updates;
  double loss;
};

/// What printing leaves uncertain (section 11.1).
inline constexpr double kGoldenLossTolerance = 1e-10;      // absolute
inline constexpr double kGoldenGradientTolerance = 5e-9;   // relative
inline constexpr double kGoldenTrajectoryTolerance = 6e-9; // absolute

/// CS336-ref: D=64 F=192 L=2 H=4 V=97, B=2 S=32 (sections 11.2, 11.3 and 11.5).
namespace cs336 {

inline constexpr double kLoss = 5.2639091695;
inline constexpr double kGradientNorm = 2.79133840e+00;

inline constexpr GoldenGradient kGradients[] = {
    {"tok_emb", 6208, 3.20773606e-01, -1.09447295e-03},
    {"layers.0.ln1", 64, 1.24032805e-01, 2.70399889e-03},
    {"layers.0.wq", 4096, 5.54217718e-01, -4.49532152e-03},
    {"layers.0.wk", 4096, 5.94050006e-01, 8.24039427e-03},
    {"layers.0.wv", 4096, 8.16617424e-01, -4.71290163e-03},
    {"layers.0.wo", 4096, 8.29691121e-01, 6.57531164e-03},
    {"layers.0.ln2", 64, 1.34916315e-01, -5.08800439e-03},
    {"layers.0.w1", 12288, 6.78970893e-01, -1.49787820e-04},
    {"layers.0.w2", 12288, 1.19808237e+00, -2.71587612e-03},
    {"layers.0.w3", 12288, 6.57625249e-01, -5.65793628e-04},
    {"layers.1.ln1", 64, 9.20036410e-02, -1.48685477e-02},
    {"layers.1.wq", 4096, 2.42874133e-01, 3.07190407e-03},
    {"layers.1.wk", 4096, 2.38591136e-01, 5.30260213e-03},
    {"layers.1.wv", 4096, 5.69282180e-01, -1.98512062e-03},
    {"layers.1.wo", 4096, 6.25573528e-01, -3.26729768e-03},
    {"layers.1.ln2", 64, 9.49611473e-02, 4.35379858e-03},
    {"layers.1.w1", 12288, 4.96551812e-01, 5.56079053e-04},
    {"layers.1.w2", 12288, 8.76690411e-01, -2.98968608e-03},
    {"layers.1.w3", 12288, 5.21114297e-01, 1.53362364e-03},
    {"ln_final", 64, 1.95226336e-01, 1.85279127e-02},
    {"lm_head", 6208, 1.06642694e+00, -2.02652904e-03},
};

/// AdamW with lr 1e-3, betas (0.9, 0.95), eps 1e-8, no weight decay, no clipping.
inline constexpr GoldenLoss kTrajectory[] = {
    {1, 4.64323540}, {2, 4.07707829}, {5, 2.72111591}, {10, 1.26929108}, {20, 0.24834429},
};

} // namespace cs336

/// TTT-ref: D=64 H=4 F=128 L=2 V=97 b0=16 eta_base=0.5, B=2 S=40: the last chunk has 8 tokens.
namespace ttt {

inline constexpr double kLoss = 5.1856712637;
inline constexpr double kGradientNorm = 3.48440837e+00;

inline constexpr GoldenGradient kGradients[] = {
    {"tok_emb", 6208, 2.12696140e+00},
    {"layers.0.norm1", 64, 2.24498008e-01},
    {"layers.0.w_q", 4096, 1.26916890e+00},
    {"layers.0.w_k", 4096, 1.03627313e+00},
    {"layers.0.w_v", 4096, 5.63224047e-01},
    {"layers.0.w_o", 4096, 1.17689025e+00},
    {"layers.0.W0", 1024, 5.78225695e-01},
    {"layers.0.ln_w", 64, 2.54451104e-01},
    {"layers.0.ln_b", 64, 1.57796017e-01},
    {"layers.0.theta_lr", 64, 3.41782901e-01},
    {"layers.0.norm2", 64, 7.80710166e-02},
    {"layers.0.gate", 8192, 4.98231143e-01},
    {"layers.0.up", 8192, 4.91788157e-01},
    {"layers.0.down", 8192, 7.13429493e-01},
    {"layers.1.norm1", 64, 1.13618715e-01},
    {"layers.1.w_q", 4096, 6.42719999e-01},
    {"layers.1.w_k", 4096, 5.44018511e-01},
    {"layers.1.w_v", 4096, 2.89406116e-01},
    {"layers.1.w_o", 4096, 5.96953425e-01},
    {"layers.1.W0", 1024, 2.52309141e-01},
    {"layers.1.ln_w", 64, 1.06472742e-01},
    {"layers.1.ln_b", 64, 7.34927905e-02},
    {"layers.1.theta_lr", 64, 1.04868211e-01},
    {"layers.1.norm2", 64, 5.48465187e-02},
    {"layers.1.gate", 8192, 3.02233873e-01},
    {"layers.1.up", 8192, 2.87614565e-01},
    {"layers.1.down", 8192, 4.14794592e-01},
    {"norm", 64, 1.76729041e-01},
};

inline constexpr GoldenLoss kTrajectory[] = {
    {1, 4.58548656}, {2, 4.04895304}, {5, 2.83682177}, {10, 1.59970960}, {20, 0.48842261},
};

} // namespace ttt

/// Megalodon-ref and Megalodon-ref-swiglu: D=64 L=2 H=2 z=32 v=64 F=128 N=4 Cs=16 G=8 V=97, B=2 S=32. Gradients
/// of layer 0 and outside of layers.
namespace megalodon {

inline constexpr double kLoss = 4.7476323166, kSwigluLoss = 4.7106794136;
inline constexpr double kGradientNorm = 1.81916572e+00, kSwigluGradientNorm = 1.56009858e+00;

inline constexpr GoldenGradient kGradients[] = {
    {"embed", 6208, 2.53030882e-01},
    {"layers.0.tn_w", 64, 3.62347032e-02},
    {"layers.0.tn_b", 64, 3.22231815e-02},
    {"layers.0.alpha", 256, 1.45910864e-02},
    {"layers.0.delta", 256, 8.15120306e-03},
    {"layers.0.theta", 64, 4.24210957e-02},
    {"layers.0.gamma_re", 256, 3.47379608e-02},
    {"layers.0.gamma_im", 256, 2.07874150e-02},
    {"layers.0.omega", 64, 5.66689305e-02},
    {"layers.0.rms_w", 64, 3.68839579e-02},
    {"layers.0.wz", 2048, 4.73024403e-03},
    {"layers.0.bz", 32, 6.32847628e-04},
    {"layers.0.wv", 4096, 2.66282807e-02},
    {"layers.0.bv", 64, 5.36449495e-03},
    {"layers.0.wr", 4096, 3.03958366e-02},
    {"layers.0.br", 64, 4.20510461e-03},
    {"layers.0.wh1", 4096, 4.93192408e-01},
    {"layers.0.bh1", 64, 4.93960313e-02},
    {"layers.0.wh2", 4096, 2.75381935e-02},
    {"layers.0.qk_gamma", 64, 5.44253940e-04},
    {"layers.0.qk_beta", 64, 1.15777613e-03},
    {"layers.0.ffn_ln_w", 64, 4.35654554e-02},
    {"layers.0.ffn_ln_b", 64, 3.11938705e-02},
    {"layers.0.fc1", 8192, 5.67229628e-01},
    {"layers.0.fc2", 8192, 7.83395560e-01},
    {"norm_w", 64, 8.61316597e-02},
    {"norm_b", 64, 7.25308257e-02},
    {"lm_head", 6208, 1.02806988e+00},
};

inline constexpr GoldenGradient kSwigluGradients[] = {
    {"embed", 6208, 2.77086500e-01},
    {"layers.0.tn_w", 64, 3.88839233e-02},
    {"layers.0.tn_b", 64, 3.11198029e-02},
    {"layers.0.alpha", 256, 1.20966032e-02},
    {"layers.0.delta", 256, 8.86803463e-03},
    {"layers.0.theta", 64, 3.89604432e-02},
    {"layers.0.gamma_re", 256, 2.88202551e-02},
    {"layers.0.gamma_im", 256, 1.83901724e-02},
    {"layers.0.omega", 64, 4.22511399e-02},
    {"layers.0.rms_w", 64, 4.03514150e-02},
    {"layers.0.wz", 2048, 4.55642534e-03},
    {"layers.0.bz", 32, 4.90735366e-04},
    {"layers.0.wv", 4096, 2.39141406e-02},
    {"layers.0.bv", 64, 5.30905030e-03},
    {"layers.0.wr", 4096, 2.63084536e-02},
    {"layers.0.br", 64, 3.02299322e-03},
    {"layers.0.wh1", 4096, 4.58325178e-01},
    {"layers.0.bh1", 64, 5.40739610e-02},
    {"layers.0.wh2", 4096, 2.48850509e-02},
    {"layers.0.qk_gamma", 64, 4.55559462e-04},
    {"layers.0.qk_beta", 64, 1.55373672e-03},
    {"layers.0.ffn_ln_w", 64, 3.86432261e-02},
    {"layers.0.ffn_ln_b", 64, 3.80244571e-02},
    {"layers.0.fc1", 8192, 3.90325555e-01},
    {"layers.0.fc2", 8192, 5.43660608e-01},
    {"layers.0.fc3", 8192, 3.56742110e-01},
    {"norm_w", 64, 8.43999054e-02},
    {"norm_b", 64, 8.23616245e-02},
    {"lm_head", 6208, 1.00072088e+00},
};

inline constexpr GoldenLoss kTrajectory[] = {
    {1, 4.45362178}, {2, 4.17126558}, {5, 3.40702437}, {10, 2.39130911}, {20, 0.99117406},
};
inline constexpr GoldenLoss kSwigluTrajectory[] = {
    {1, 4.44036107}, {2, 4.17654020}, {5, 3.42438680}, {10, 2.30864188}, {20, 0.72759795},
};

} // namespace megalodon

/// HYDRA-ref: D=96 H=6 Hk=3 F=256 Nb=3 R=3 V=97 kappa=0.75, B=2 S=32: fixed depth, dynamic and static routing.
namespace hydra_ref {

/// The parts of a loss, and how many tokens of each block have depth 0, 1 and 2 (section 11.2).
struct Routing {
  double ce, aux, ponder;
  int depths[3][3];
};
inline constexpr Routing kDynamicRouting = {
    4.7114223995, 0.0044558688, 0.0175977392, {{0, 29, 35}, {0, 36, 28}, {0, 31, 33}}};
inline constexpr Routing kStaticRouting = {
    4.7261332540, 0.0072295882, 0.0167629516, {{9, 39, 16}, {14, 36, 14}, {15, 28, 21}}};

/// Steps of the curriculum (sections 3.4 to 3.6) on the same case, by a PyTorch program in float64.
/// `Blend`: s = 0.3 and warm = 0.4 with dynamic routing, s = 0.6 and warm = 0.5 with static.
/// `Advantage`: adv_lambda = 0.25, adv_mult = 2, loss_aware = 0.3, after 1500 batches of mean 4.5
/// and variance 0.04, with labels [0, 3], [0, 7] and [1, 17] ignored; `AdvantageFirst` is the first
/// batch, without loss_aware. `LossAverage`: after it.
struct LossAverage {
  double mean, variance, batches;
};
inline constexpr double kBlendDynamicLoss = 4.749825840521,
                        kBlendDynamicGradientNorm = 6.359483795e+00;
inline constexpr GoldenGradient kBlendDynamicGradients[] = {
    {"tok_emb", 9312, 4.362066406e+00, -1.583338937e-02},
    {"layers.0.mor_w", 96, 7.034683878e-06, 6.453665120e-07},
    {"layers.1.mor_w", 96, 1.051960446e-05, 1.813205009e-06},
    {"layers.2.mor_b", 1, 5.906236097e-07, 5.906236097e-07},
    {"layers.1.mod_w", 96, 1.367661349e-02, 7.682349575e-04},
    {"layers.1.mod_b", 1, 3.346557305e-03, -3.346557305e-03},
    {"layers.0.tau", 1, 1.282620161e-03, 1.282620161e-03},
    {"layers.1.rec_embed", 288, 8.016100235e-02, 8.336483770e-03},
    {"layers.2.down", 24576, 1.094192611e+00, 8.340411442e-03},
    {"layers.1.final_norm", 96, 9.472267283e-02, -3.890470235e-03},
};
inline constexpr double kBlendStaticLoss = 4.733673753705,
                        kBlendStaticGradientNorm = 4.820147937e+00;
inline constexpr GoldenGradient kBlendStaticGradients[] = {
    {"tok_emb", 9312, 3.377917038e+00, -1.676061396e-02},
    {"layers.0.mor_w", 96, 7.000655517e-02, -3.871296835e-03},
    {"layers.1.mor_w", 96, 5.786601082e-02, 3.489859901e-03},
    {"layers.2.mor_b", 1, 6.846593223e-03, -6.846593223e-03},
    {"layers.1.mod_w", 96, 2.050102352e-01, 2.823601250e-02},
    {"layers.1.mod_b", 1, 3.577885749e-03, -3.577885749e-03},
    {"layers.0.tau", 1, 9.396357226e-03, 9.396357226e-03},
    {"layers.1.rec_embed", 288, 6.083642280e-02, 4.375587517e-03},
    {"layers.2.down", 24576, 9.797914480e-01, 5.315508166e-03},
    {"layers.1.final_norm", 96, 8.429996355e-02, -4.772125204e-03},
};
inline constexpr double kAdvantageLoss = 4.970595875265, kAdvantageGradientNorm = 6.785713871e+00;
inline constexpr GoldenGradient kAdvantageGradients[] = {
    {"tok_emb", 9312, 4.678133166e+00, 1.958765556e-02},
    {"layers.0.mor_w", 96, 1.904244991e-01, 5.821996108e-03},
    {"layers.1.mor_w", 96, 3.569724523e-01, -3.493846604e-02},
    {"layers.2.mor_b", 1, 6.464787113e-02, -6.464787113e-02},
    {"layers.1.mod_w", 96, 5.503388975e-01, -3.988042592e-02},
    {"layers.1.mod_b", 1, 1.070329773e-01, -1.070329773e-01},
    {"layers.0.tau", 1, 1.690395143e-02, 1.690395143e-02},
    {"layers.1.rec_embed", 288, 1.531798983e-01, 1.122415761e-02},
    {"layers.2.down", 24576, 1.049598353e+00, 8.367905761e-03},
    {"layers.1.final_norm", 96, 1.040314490e-01, -6.406430852e-03},
};
inline constexpr double kBlendAdvantageLoss = 4.775089049772,
                        kBlendAdvantageGradientNorm = 6.528444109e+00;
inline constexpr GoldenGradient kBlendAdvantageGradients[] = {
    {"tok_emb", 9312, 4.447935058e+00, -1.455284108e-02},
    {"layers.0.mor_w", 96, 5.702669347e-02, 8.600642916e-04},
    {"layers.1.mor_w", 96, 1.045384878e-01, -9.083807087e-03},
    {"layers.2.mor_b", 1, 2.145738399e-02, -2.145738399e-02},
    {"layers.1.mod_w", 96, 1.416866977e-01, -1.943266245e-02},
    {"layers.1.mod_b", 1, 3.468112528e-02, -3.468112528e-02},
    {"layers.0.tau", 1, 3.273981823e-03, 3.273981823e-03},
    {"layers.1.rec_embed", 288, 9.220951988e-02, 8.601586843e-03},
    {"layers.2.down", 24576, 1.122384650e+00, 8.971280415e-03},
    {"layers.1.final_norm", 96, 9.666151298e-02, -4.305326493e-03},
};
inline constexpr double kAdvantageFirstLoss = 4.700839290018,
                        kAdvantageFirstGradientNorm = 5.763331126e+00;
inline constexpr GoldenGradient kAdvantageFirstGradients[] = {
    {"tok_emb", 9312, 3.969319056e+00, 9.588618952e-03},
    {"layers.0.mor_w", 96, 5.861218524e-05, 5.383899752e-06},
    {"layers.1.mor_w", 96, 9.748957354e-05, 1.717351920e-05},
    {"layers.2.mor_b", 1, 6.023300251e-06, 6.023300251e-06},
    {"layers.1.mod_w", 96, 1.717731003e-02, 1.410557443e-03},
    {"layers.1.mod_b", 1, 3.420343947e-03, -3.420343947e-03},
    {"layers.0.tau", 1, 1.166701755e-02, 1.166701755e-02},
    {"layers.1.rec_embed", 288, 8.187937827e-02, 7.489021901e-03},
    {"layers.2.down", 24576, 1.049598353e+00, 8.367905761e-03},
    {"layers.1.final_norm", 96, 9.748760457e-02, -6.981783633e-03},
};
inline constexpr LossAverage kAdvantageAverage = {4.501962074439, 0.042538348191, 1501};
inline constexpr LossAverage kBlendAdvantageAverage = {4.502268265810, 0.042679431449, 1501};
inline constexpr LossAverage kAdvantageFirstAverage = {4.696207443871, 0.293834819056, 1};

inline constexpr double kFixedLoss = 4.7655834964, kFixedGradientNorm = 6.97785967e+00;
inline constexpr GoldenGradient kFixedGradients[] = {
    {"tok_emb", 9312, 4.72926135e+00},
    {"layers.0.norm1", 96, 8.30034944e-02},
    {"layers.0.qkv", 4608, 8.58091781e-01},
    {"layers.0.q_conv1", 288, 2.17028780e-01},
    {"layers.0.q_conv2", 1728, 2.19642762e-01},
    {"layers.0.k_conv1", 144, 1.74293211e-01},
    {"layers.0.k_conv2", 432, 1.93748980e-01},
    {"layers.0.tau", 1, 4.42278774e-03},
    {"layers.0.o_proj", 2304, 3.60556610e-01},
    {"layers.0.norm2", 96, 3.13876910e-01},
    {"layers.0.gate_up", 49152, 2.81338595e+00},
    {"layers.0.down", 24576, 3.08592595e+00},
    {"layers.0.rec_bias", 288, 3.48894123e-01},
    {"layers.0.rec_embed", 288, 3.48894123e-01},
    {"layers.0.mor_w", 96, 0.00000000e+00},
    {"layers.0.mor_b", 1, 0.00000000e+00},
    {"layers.0.final_norm", 96, 1.66450672e-01},
    {"layers.1.norm1", 96, 3.27038103e-02},
    {"layers.1.qkv", 4608, 3.14707754e-01},
    {"layers.1.q_conv1", 288, 6.55874151e-02},
    {"layers.1.q_conv2", 1728, 6.28266470e-02},
    {"layers.1.k_conv1", 144, 5.52284864e-02},
    {"layers.1.k_conv2", 432, 5.21999331e-02},
    {"layers.1.tau", 1, 7.88625665e-03},
    {"layers.1.o_proj", 2304, 1.37337379e-01},
    {"layers.1.norm2", 96, 1.64686654e-01},
    {"layers.1.gate_up", 49152, 1.49765389e+00},
    {"layers.1.down", 24576, 1.63049111e+00},
    {"layers.1.rec_bias", 288, 9.35043173e-02},
    {"layers.1.rec_embed", 288, 9.35043173e-02},
    {"layers.1.mor_w", 96, 0.00000000e+00},
    {"layers.1.mor_b", 1, 0.00000000e+00},
    {"layers.1.mod_w", 96, 0.00000000e+00},
    {"layers.1.mod_b", 1, 0.00000000e+00},
    {"layers.1.final_norm", 96, 9.61487689e-02},
    {"layers.2.qkv", 4608, 2.14931165e-01},
    {"layers.2.k_conv2", 432, 3.55148491e-02},
    {"layers.2.tau", 1, 5.49497957e-03},
    {"layers.2.gate_up", 49152, 1.00608548e+00},
    {"layers.2.mor_w", 96, 0.00000000e+00},
    {"layers.2.final_norm", 96, 7.01513713e-02},
    {"norm", 96, 7.63369015e-02},
};
inline constexpr GoldenLoss kFixedTrajectory[] = {{1, 3.65791538}, {2, 3.08399698}, {5, 2.08344264}, {10, 1.20075512}, {20, 0.43234734}};

inline constexpr double kDynamicLoss = 4.7160542457, kDynamicGradientNorm = 5.64569390e+00;
inline constexpr GoldenGradient kDynamicGradients[] = {
    {"tok_emb", 9312, 3.90672980e+00},
    {"layers.0.norm1", 96, 6.45331589e-02},
    {"layers.0.qkv", 4608, 6.55296865e-01},
    {"layers.0.q_conv1", 288, 1.42295320e-01},
    {"layers.0.q_conv2", 1728, 1.35068661e-01},
    {"layers.0.k_conv1", 144, 1.49114648e-01},
    {"layers.0.k_conv2", 432, 1.40994312e-01},
    {"layers.0.tau", 1, 8.40497314e-03},
    {"layers.0.o_proj", 2304, 2.96498704e-01},
    {"layers.0.norm2", 96, 2.34383756e-01},
    {"layers.0.gate_up", 49152, 2.23577495e+00},
    {"layers.0.down", 24576, 2.44144732e+00},
    {"layers.0.rec_bias", 288, 3.15324794e-01},
    {"layers.0.rec_embed", 288, 3.15324794e-01},
    {"layers.0.mor_w", 96, 5.86110880e-05},
    {"layers.0.mor_b", 1, 7.81140606e-06},
    {"layers.0.final_norm", 96, 1.24153937e-01},
    {"layers.1.norm1", 96, 3.34873682e-02},
    {"layers.1.qkv", 4608, 2.97112425e-01},
    {"layers.1.q_conv1", 288, 6.15291608e-02},
    {"layers.1.q_conv2", 1728, 5.77288414e-02},
    {"layers.1.k_conv1", 144, 6.61339948e-02},
    {"layers.1.k_conv2", 432, 5.49444277e-02},
    {"layers.1.tau", 1, 5.70836261e-03},
    {"layers.1.o_proj", 2304, 1.17721586e-01},
    {"layers.1.norm2", 96, 1.10396092e-01},
    {"layers.1.gate_up", 49152, 1.12835360e+00},
    {"layers.1.down", 24576, 1.19407688e+00},
    {"layers.1.rec_bias", 288, 7.70667707e-02},
    {"layers.1.rec_embed", 288, 7.70667707e-02},
    {"layers.1.mor_w", 96, 9.74900618e-05},
    {"layers.1.mor_b", 1, 2.81853190e-06},
    {"layers.1.mod_w", 96, 1.71773100e-02},
    {"layers.1.mod_b", 1, 3.42034395e-03},
    {"layers.1.final_norm", 96, 9.43543965e-02},
    {"layers.2.qkv", 4608, 2.03722200e-01},
    {"layers.2.k_conv2", 432, 4.59351175e-02},
    {"layers.2.tau", 1, 5.20361124e-03},
    {"layers.2.gate_up", 49152, 8.98563085e-01},
    {"layers.2.mor_w", 96, 8.31849782e-05},
    {"layers.2.final_norm", 96, 7.44810702e-02},
    {"norm", 96, 7.95140849e-02},
};
inline constexpr GoldenLoss kDynamicTrajectory[] = {{1, 3.73200889}, {2, 3.14606870}, {5, 2.16585827}, {10, 1.24285266}, {20, 0.48837099}};

inline constexpr double kStaticLoss = 4.7335304717, kStaticGradientNorm = 4.19785294e+00;
inline constexpr GoldenGradient kStaticGradients[] = {
    {"tok_emb", 9312, 2.99566538e+00},
    {"layers.0.norm1", 96, 5.02686551e-02},
    {"layers.0.qkv", 4608, 5.11962008e-01},
    {"layers.0.q_conv1", 288, 1.10328531e-01},
    {"layers.0.q_conv2", 1728, 1.06430863e-01},
    {"layers.0.k_conv1", 144, 1.03998357e-01},
    {"layers.0.k_conv2", 432, 9.85180407e-02},
    {"layers.0.tau", 1, 7.72467922e-03},
    {"layers.0.o_proj", 2304, 2.12683430e-01},
    {"layers.0.norm2", 96, 1.47036466e-01},
    {"layers.0.gate_up", 49152, 1.58841888e+00},
    {"layers.0.down", 24576, 1.75595365e+00},
    {"layers.0.rec_bias", 288, 2.02086636e-01},
    {"layers.0.rec_embed", 288, 2.02086636e-01},
    {"layers.0.mor_w", 96, 1.09253307e-01},
    {"layers.0.mor_b", 1, 9.20237642e-03},
    {"layers.0.final_norm", 96, 1.00032808e-01},
    {"layers.1.norm1", 96, 2.22970909e-02},
    {"layers.1.qkv", 4608, 2.02730589e-01},
    {"layers.1.q_conv1", 288, 4.69947067e-02},
    {"layers.1.q_conv2", 1728, 4.99850491e-02},
    {"layers.1.k_conv1", 144, 4.22032800e-02},
    {"layers.1.k_conv2", 432, 4.02108897e-02},
    {"layers.1.tau", 1, 3.88022243e-03},
    {"layers.1.o_proj", 2304, 1.01244013e-01},
    {"layers.1.norm2", 96, 9.04537892e-02},
    {"layers.1.gate_up", 49152, 6.44500621e-01},
    {"layers.1.down", 24576, 6.97709187e-01},
    {"layers.1.rec_bias", 288, 5.74493311e-02},
    {"layers.1.rec_embed", 288, 5.74493311e-02},
    {"layers.1.mor_w", 96, 8.33035469e-02},
    {"layers.1.mor_b", 1, 1.25869563e-03},
    {"layers.1.mod_w", 96, 1.62229853e-01},
    {"layers.1.mod_b", 1, 4.81782478e-04},
    {"layers.1.final_norm", 96, 7.92000324e-02},
    {"layers.2.qkv", 4608, 1.97258601e-01},
    {"layers.2.k_conv2", 432, 4.05549584e-02},
    {"layers.2.tau", 1, 3.29197053e-04},
    {"layers.2.gate_up", 49152, 8.15500217e-01},
    {"layers.2.mor_w", 96, 1.08751328e-01},
    {"layers.2.final_norm", 96, 6.92370782e-02},
    {"norm", 96, 7.88434353e-02},
};
inline constexpr GoldenLoss kStaticTrajectory[] = {{1, 3.79661704}, {2, 3.17717422}, {5, 2.07937212}, {10, 1.15719551}, {20, 0.40996933}};

} // namespace hydra_ref
} // namespace hydra::test

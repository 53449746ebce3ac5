// All operations of the dialect.
#ifndef HYDRA_OPS_TD
#define HYDRA_OPS_TD

include "dialects/hydra/ModelOps.td"
include "dialects/hydra/ElementwiseOps.td"
include "dialects/hydra/ShapeOps.td"
include "dialects/hydra/ReductionOps.td"
include "dialects/hydra/ContractionOps.td"
include "dialects/hydra/QuantizationOps.td"
include "dialects/hydra/NormOps.td"
include "dialects/hydra/AttentionOps.td"
include "dialects/hydra/LossOps.td"
include "dialects/hydra/RoutingOps.td"
include "dialects/hydra/CountingOps.td"
include "dialects/hydra/RandomOps.td"
include "dialects/hydra/SamplingOps.td"
include "dialects/hydra/GroupedOps.td"
include "dialects/hydra/TransformOps.td"
include "dialects/hydra/RecurrenceOps.td"
include "dialects/hydra/MasterOps.td"
include "dialects/hydra/OptimizerOps.td"
include "dialects/hydra/optimizers/AdamW.td"
include "dialects/hydra/optimizers/AdamW8bit.td"
include "dialects/hydra/optimizers/Composed.td"
include "dialects/hydra/optimizers/Lion.td"
include "dialects/hydra/optimizers/Sgd.td"
include "dialects/hydra/FusionOps.td"
include "dialects/hydra/CollectiveOps.td"

#endif // HYDRA_OPS_TD
